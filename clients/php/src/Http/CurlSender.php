<?php

/** Posts batches with ext-curl over one connection that is kept. */

declare(strict_types=1);

namespace Millrace\Http;

use Millrace\Batch;
use Millrace\Version;

final class CurlSender implements Sender
{
    private ?\CurlHandle $curl = null;
    private int $process = 0;
    private readonly CurlAnswer $answer;

    public function __construct(
        private readonly Endpoint $endpoint,
        private readonly float $connectTimeout = 1.0,
        private readonly float $requestTimeout = 3.0,
        private readonly bool $gzip = false,
        private readonly ?string $caFile = null,
    ) {
        $this->answer = new CurlAnswer();
    }

    public function send(Batch $batch): Reply
    {
        $body = $batch->body();
        $packed = $this->gzip ? gzencode($body, 6) : false;
        $curl = $this->curl();
        $this->answer->clear();
        curl_setopt($curl, CURLOPT_POSTFIELDS, $packed === false ? $body : $packed);
        curl_setopt($curl, CURLOPT_HTTPHEADER, $this->headers($packed !== false));
        $isDone = curl_exec($curl) !== false;
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        if (!$isDone || !is_int($status) || $status === 0) {
            $reason = curl_error($curl) === '' ? 'no answer' : curl_error($curl);
            return Reply::unanswered("{$this->endpoint->url()}: $reason", curl_errno($curl) === CURLE_OPERATION_TIMEDOUT);
        }
        return new Reply($status, $this->answer->body, '', $this->answer->retryAfterSeconds);
    }

    private function curl(): \CurlHandle
    {
        // A forked worker must not talk over its parent's connection.
        $process = (int) getmypid();
        if ($this->curl !== null && $this->process === $process) {
            return $this->curl;
        }
        $curl = curl_init();
        if ($curl === false) {
            throw new \RuntimeException('curl cannot be started');
        }
        curl_setopt_array($curl, $this->settings());
        $this->curl = $curl;
        $this->process = $process;
        return $curl;
    }

    /** @return array<int, mixed> */
    private function settings(): array
    {
        // Functions that knew this sender would keep it, and its connection, until PHP next looks for cycles.
        $answer = $this->answer;
        $settings = [
            CURLOPT_URL => $this->endpoint->url(),
            CURLOPT_POST => true,
            CURLOPT_PROTOCOLS => CURLPROTO_HTTP | CURLPROTO_HTTPS,
            CURLOPT_FOLLOWLOCATION => false,
            CURLOPT_CONNECTTIMEOUT_MS => (int) ceil($this->connectTimeout * 1000),
            CURLOPT_TIMEOUT_MS => (int) ceil($this->requestTimeout * 1000),
            CURLOPT_NOSIGNAL => true,
            CURLOPT_SSL_VERIFYPEER => true,
            CURLOPT_SSL_VERIFYHOST => 2,
            CURLOPT_USERAGENT => Version::LIBRARY . '/' . Version::NUMBER,
            CURLOPT_WRITEFUNCTION => static fn (\CurlHandle $curl, string $part): int => $answer->read($part),
            CURLOPT_HEADERFUNCTION => static fn (\CurlHandle $curl, string $line): int => $answer->readHeader($line),
        ];
        // @mago-expect analysis:unavailable-constant
        return $this->caFile === null ? $settings : $settings + [CURLOPT_CAINFO => $this->caFile];
    }

    /** @return list<string> */
    private function headers(bool $isPacked): array
    {
        $headers = [
            'Authorization: ' . $this->endpoint->authorization(),
            'Content-Type: application/json',
            // Without this curl asks the server's leave for a large body first, and waits for it.
            'Expect:',
        ];
        return $isPacked ? [...$headers, 'Content-Encoding: gzip'] : $headers;
    }
}

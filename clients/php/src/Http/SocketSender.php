<?php

/** Posts batches over a plain or TLS stream: one connection each, and no extension but openssl for https. */

declare(strict_types=1);

namespace Millrace\Http;

use Millrace\Batch;
use Millrace\Clock;
use Millrace\Quietly;
use Millrace\Version;

final class SocketSender implements Sender
{
    private const ANSWER_BYTES_MAX = 65_536;

    /**
     * @param float $timeout seconds for connecting, TLS and writing together
     * @param float|null $answerTimeout seconds to wait for the answer; null for not waiting, and then 202 stands for
     *                                  every request that was written whole
     */
    public function __construct(
        private readonly Endpoint $endpoint,
        private readonly float $timeout,
        private readonly ?float $answerTimeout,
        private readonly bool $gzip = false,
        private readonly ?string $caFile = null,
    ) {
    }

    public function send(Batch $batch): Reply
    {
        $warning = '';
        $reply = Quietly::run(fn (): Reply => $this->attempt($batch), $warning);
        if ($reply->status !== 0 || $warning === '') {
            return $reply;
        }
        $isTimeout = $reply->isTimeout || str_contains($warning, 'timed out');
        return Reply::unanswered($reply->error . ' (' . trim($warning) . ')', $isTimeout);
    }

    private function attempt(Batch $batch): Reply
    {
        $deadline = Clock::seconds() + $this->timeout;
        $stream = $this->connect($deadline);
        if ($stream instanceof Reply) {
            return $stream;
        }
        try {
            $failure = self::write($stream, $this->request($batch), $deadline);
            if ($failure !== null) {
                return Reply::unanswered("{$this->endpoint->url()}: $failure", $failure === 'timed out while writing');
            }
            if ($this->answerTimeout !== null) {
                return $this->answer($stream, Clock::seconds() + $this->answerTimeout);
            }
            // Closing over unread bytes, such as TLS tickets, would be a reset that overtakes what was just written.
            fread($stream, self::ANSWER_BYTES_MAX);
            return new Reply(202);
        } finally {
            fclose($stream);
        }
    }

    /** @return resource|Reply the reason, where there is no connection */
    private function connect(float $deadline)
    {
        $tls = ['verify_peer' => true, 'verify_peer_name' => true, 'peer_name' => trim($this->endpoint->host, '[]')];
        $context = stream_context_create(['ssl' => $this->caFile === null ? $tls : $tls + ['cafile' => $this->caFile]]);
        $address = "tcp://{$this->endpoint->host}:{$this->endpoint->port}";
        $stream = stream_socket_client($address, $number, $reason, $this->timeout, STREAM_CLIENT_CONNECT, $context);
        if ($stream === false) {
            $isTimeout = str_contains((string) $reason, 'timed out');
            return Reply::unanswered("{$this->endpoint->url()}: $reason", $isTimeout);
        }
        $secured = $this->endpoint->scheme === 'http' || $this->secure($stream, $deadline);
        if ($secured === true) {
            stream_set_blocking($stream, false);
            return $stream;
        }
        fclose($stream);
        return Reply::unanswered("{$this->endpoint->url()}: the TLS handshake failed", Clock::seconds() >= $deadline);
    }

    /** @param resource $stream */
    private function secure($stream, float $deadline): bool
    {
        stream_set_blocking($stream, false);
        $method = STREAM_CRYPTO_METHOD_TLSv1_2_CLIENT | STREAM_CRYPTO_METHOD_TLSv1_3_CLIENT;
        // 0 means that the other side has yet to say something.
        while (($state = stream_socket_enable_crypto($stream, true, $method)) === 0) {
            if (!self::waits($stream, false, $deadline)) {
                return false;
            }
        }
        return $state === true;
    }

    private function request(Batch $batch): string
    {
        $body = $batch->body();
        $packed = $this->gzip ? gzencode($body, 6) : false;
        $body = $packed === false ? $body : $packed;
        $lines = [
            'POST ' . $this->endpoint->path . '/batch HTTP/1.1',
            'Host: ' . $this->endpoint->authority(),
            'Authorization: ' . $this->endpoint->authorization(),
            'User-Agent: ' . Version::LIBRARY . '/' . Version::NUMBER,
            'Content-Type: application/json',
            'Content-Length: ' . strlen($body),
            'Connection: close',
            ...($packed === false ? [] : ['Content-Encoding: gzip']),
        ];
        return implode("\r\n", $lines) . "\r\n\r\n" . $body;
    }

    /** @param resource $stream */
    private static function write($stream, string $request, float $deadline): ?string
    {
        $offset = 0;
        $length = strlen($request);
        while ($offset < $length) {
            if (!self::waits($stream, true, $deadline)) {
                return 'timed out while writing';
            }
            $written = fwrite($stream, substr($request, $offset, 65_536));
            if ($written === false || ($written === 0 && feof($stream))) {
                return 'the connection was closed';
            }
            $offset += $written;
        }
        return null;
    }

    /** @param resource $stream */
    private function answer($stream, float $deadline): Reply
    {
        $answer = '';
        while (!self::isWhole($answer) && !feof($stream) && strlen($answer) < self::ANSWER_BYTES_MAX) {
            $part = fread($stream, 8_192);
            if ($part === false) {
                break;
            }
            $answer .= $part;
            if ($part === '' && !self::waits($stream, false, $deadline)) {
                break;
            }
        }
        [$head, $body] = explode("\r\n\r\n", $answer, 2) + ['', ''];
        if (preg_match('#^HTTP/1\.[01] (\d{3})#', $head, $found) !== 1) {
            return Reply::unanswered("{$this->endpoint->url()}: no answer", Clock::seconds() >= $deadline);
        }
        $retryAfter = array_filter(array_map(RetryAfter::read(...), explode("\r\n", $head)));
        $isChunked = preg_match('/^transfer-encoding:.*chunked/mi', $head) === 1;
        return new Reply((int) $found[1], $isChunked ? self::joined($body) : $body, '', array_pop($retryAfter));
    }

    /** Not every server closes when it is asked to: its own word on where the answer ends comes first. */
    private static function isWhole(string $answer): bool
    {
        [$head, $body] = explode("\r\n\r\n", $answer, 2) + ['', null];
        if ($body === null) {
            return false;
        }
        if (preg_match('/^transfer-encoding:.*chunked/mi', $head) === 1) {
            return preg_match('/(^|\r\n)0[^\r\n]*\r\n\r\n$/', $body) === 1;
        }
        return preg_match('/^content-length:\s*(\d{1,9})\s*$/mi', $head, $found) === 1
            ? strlen($body) >= (int) $found[1]
            : preg_match('#^HTTP/1\.[01] (204|304)#', $head) === 1;
    }

    private static function joined(string $chunks): string
    {
        $body = '';
        while (preg_match('/^([0-9a-f]{1,7})[^\r\n]*\r\n/i', $chunks, $found) === 1 && ($size = (int) hexdec($found[1])) > 0) {
            $body .= substr($chunks, strlen($found[0]), $size);
            $chunks = substr($chunks, strlen($found[0]) + $size + 2);
        }
        return $body;
    }

    /** @param resource $stream */
    private static function waits($stream, bool $writes, float $deadline): bool
    {
        $left = $deadline - Clock::seconds();
        if ($left <= 0) {
            return false;
        }
        $read = $writes ? null : [$stream];
        $write = $writes ? [$stream] : null;
        $except = null;
        // A signal ends the wait early and with a warning; the callers try again within the same deadline.
        return stream_select($read, $write, $except, (int) $left, (int) (fmod($left, 1) * 1_000_000)) !== 0;
    }
}

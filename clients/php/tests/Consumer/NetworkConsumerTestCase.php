<?php

/** What the three consumers promise that speak HTTP, whatever the server does. */

declare(strict_types=1);

namespace Millrace\Tests\Consumer;

use Millrace\Tests\Support\Certificates;
use Millrace\Tests\Support\Receiver;
use Millrace\Tests\Support\Until;

abstract class NetworkConsumerTestCase extends ConsumerTestCase
{
    private ?Receiver $receiver = null;

    protected function setUp(): void
    {
        parent::setUp();
        $this->receiver = null;
    }

    protected function options(): array
    {
        $this->receiver ??= $this->receiver();
        return $this->to($this->receiver->url());
    }

    protected function arrived(): array
    {
        return $this->receiver?->calls() ?? [];
    }

    protected function arrivedCount(): int
    {
        return $this->receiver?->callCount() ?? 0;
    }

    /**
     * With timeouts that a machine busy with other tests keeps: those that test timeouts set their own.
     *
     * @return array<string, mixed>
     */
    protected function to(string $host): array
    {
        return [
            'consumer' => $this->name(), 'host' => $host,
            'timeout' => 10, 'connect_timeout' => 10, 'request_timeout' => 30,
        ];
    }

    public function testARequestHasTheKeyInItsHeaderAndAFreshSentAt(): void
    {
        $this->started()->track(['event' => 'E']);
        gc_collect_cycles();
        $this->waitFor(1);
        $request = $this->receiver?->requests()[0] ?? self::fail('nothing came');
        self::assertSame(['POST', '/v1/batch'], [$request['method'], $request['path']]);
        self::assertSame('Basic ' . base64_encode('wk_test:'), $request['headers']['authorization']);
        self::assertSame('application/json', $request['headers']['content-type']);
        self::assertArrayNotHasKey('expect', $request['headers']);
        $body = json_decode($request['body'], true, 512, JSON_THROW_ON_ERROR);
        self::assertMatchesRegularExpression('/T\d\d:\d\d:\d\d\.\d{3}Z$/', $body['sentAt']);
        self::assertLessThan(30, abs(strtotime($body['sentAt']) - time()));
        self::assertStringNotContainsString('wk_test', $request['body']);
    }

    public function testABodyIsPackedWhereGzipIsAskedFor(): void
    {
        $analytics = $this->analytics($this->options() + ['compress_request' => true]);
        $analytics->track(['event' => str_repeat('E', 5_000)]);
        $analytics->flush();
        $this->waitFor(1);
        $request = $this->receiver?->requests()[0] ?? self::fail('nothing came');
        self::assertSame('gzip', $request['headers']['content-encoding']);
        self::assertLessThan(1_000, $request['bytes']);
    }

    public function testHttpsIsSpokenWithAServerThatAKnownAuthoritySigned(): void
    {
        $certificates = new Certificates($this->folder);
        $receiver = $this->secureReceiver($certificates->signed);
        $analytics = $this->analytics($this->to("127.0.0.1:{$receiver->port}") + ['ca_file' => $certificates->authority]);
        $analytics->track(['event' => 'Secret', 'properties' => ['x' => str_repeat('x', 30_000)]]);
        $analytics->flush();
        self::assertSame(['Secret'], array_column($receiver->waitForCalls(1), 'event'));
        self::assertSame([], $this->heard);
    }

    public function testACertificateThatSignedItselfGetsNothing(): void
    {
        $certificates = new Certificates($this->folder);
        $receiver = $this->secureReceiver($certificates->selfSigned);
        $analytics = $this->analytics($this->to($receiver->url()) + ['ca_file' => $certificates->authority]);
        $analytics->track(['event' => 'Secret']);
        $analytics->flush();
        $this->waitForSpooled(1);
        self::assertSame([], $receiver->requests());
    }

    public function testWithoutSslTheSameAddressIsHttp(): void
    {
        $receiver = $this->receiver();
        $analytics = $this->analytics($this->to("127.0.0.1:{$receiver->port}") + ['ssl' => false]);
        $analytics->track(['event' => 'Plain']);
        $analytics->flush();
        self::assertCount(1, $receiver->waitForCalls(1));
    }

    public function testWhatADeadServerDoesNotTakeIsKept(): void
    {
        $analytics = $this->analytics($this->to($this->deadUrl()));
        $began = microtime(true);
        for ($i = 0; $i < 20; $i++) {
            $analytics->track(['event' => "E$i"]);
        }
        $analytics->flush();
        self::assertLessThan(3, microtime(true) - $began);
        self::assertCount(20, array_unique(array_column($this->waitForSpooled(20), 'event')));
        self::assertSame(0, $analytics->dropped());
    }

    public function testUnderDebugADeadServerIsHeardAtEveryCall(): void
    {
        ini_set('error_log', '/dev/null');
        $analytics = $this->analytics($this->to($this->deadUrl()) + ['debug' => true]);
        self::assertFalse($analytics->track(['event' => 'One']));
        self::assertFalse($analytics->track(['event' => 'Two']));
        self::assertSame(['connection_failed', 'connection_failed'], $this->codes());
        self::assertCount(2, $this->spooled());
    }

    /** @return iterable<string, array{array<string, mixed>, string, bool}> answer, code under debug, whether kept */
    public static function failures(): iterable
    {
        yield '500' => [['status' => 500], 'server_unavailable', true];
        yield '503' => [['status' => 503], 'server_unavailable', true];
        yield '429' => [['status' => 429, 'headers' => ['Retry-After: 2']], 'server_unavailable', true];
        yield 'a redirect' => [['status' => 301, 'headers' => ['Location: /v1/batch']], 'server_misdirected', true];
        yield 'a wrong key' => [['status' => 401], 'server_misdirected', true];
        yield 'a wrong address' => [['status' => 404], 'server_misdirected', true];
        yield 'a refusal' => [['status' => 400, 'body' => '{"code":"invalid_json"}'], 'calls_dropped', false];
    }

    /**
     * @dataProvider failures
     * @param array<string, mixed> $answer
     */
    public function testUnderDebugTheHandlerHearsWhatTheServerAnswers(array $answer, string $code, bool $isKept): void
    {
        ini_set('error_log', '/dev/null');
        $receiver = $this->receiver($answer);
        $analytics = $this->analytics($this->to($receiver->url()) + ['debug' => true]);
        self::assertFalse($analytics->track(['event' => 'E']));
        self::assertSame([$code], $this->codes());
        self::assertStringContainsString((string) $answer['status'], $this->heard[0][1]);
        self::assertSame($isKept ? 1 : 0, count($this->spooled()));
        self::assertSame($isKept ? 0 : 1, $analytics->dropped());
        self::assertLessThanOrEqual(2, count($receiver->requests()));
    }

    public function testEvery2xxIsSuccess(): void
    {
        ini_set('error_log', '/dev/null');
        foreach ([200, 201, 202, 204] as $status) {
            $receiver = $this->receiver(['status' => $status, 'body' => '']);
            $analytics = $this->analytics($this->to($receiver->url()) + ['debug' => true]);
            self::assertTrue($analytics->track(['event' => 'E']));
            self::assertCount(1, $receiver->requests());
        }
        self::assertSame([], $this->heard);
    }

    public function testUnderDebugRejectedCallsAreHeard(): void
    {
        ini_set('error_log', '/dev/null');
        $body = '{"success":true,"accepted":0,"rejected":[{"index":0,"code":"message_id_too_long"}],"rejectedCount":1}';
        $analytics = $this->analytics($this->to($this->receiver(['body' => $body])->url()) + ['debug' => true]);
        self::assertFalse($analytics->track(['event' => 'E']));
        self::assertSame(['calls_rejected'], $this->codes());
        self::assertStringContainsString('message_id_too_long', $this->heard[0][1]);
    }

    public function testUnderDebugAnAnswerThatNeverComesIsWaitedForInVainAndNotForLong(): void
    {
        ini_set('error_log', '/dev/null');
        $receiver = $this->receiver(['delayMs' => 60_000]);
        $analytics = $this->analytics(['debug' => true, 'request_timeout' => 0.7, 'timeout' => 0.5] + $this->to($receiver->url()));
        $began = microtime(true);
        self::assertFalse($analytics->track(['event' => 'E']));
        self::assertLessThan(5, microtime(true) - $began);
        self::assertCount(1, $this->heard);
        self::assertCount(1, $this->spooled());
    }

    /** @return list<array<string, mixed>> */
    protected function waitForSpooled(int $count): array
    {
        Until::true(fn (): bool => count($this->spooled()) >= $count, "$count calls in the spool");
        self::assertCount($count, $this->spooled());
        return $this->spooled();
    }
}

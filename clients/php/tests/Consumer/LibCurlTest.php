<?php

declare(strict_types=1);

namespace Millrace\Tests\Consumer;

use Millrace\Tests\Support\Page;

final class LibCurlTest extends QueueConsumerTestCase
{
    protected function name(): string
    {
        return 'lib_curl';
    }

    public function testItIsTheDefault(): void
    {
        $receiver = $this->receiver();
        $analytics = $this->analytics(['host' => $receiver->url()]);
        $analytics->track(['event' => 'E']);
        $analytics->flush();
        self::assertSame('lib_curl', $receiver->waitForCalls(1)[0]['context']['library']['consumer']);
    }

    /** @return iterable<string, array{array<string, mixed>}> */
    public static function passing(): iterable
    {
        yield 'a closed connection' => [['status' => 0, 'delayMs' => 20]];
        yield '500' => [['status' => 500, 'delayMs' => 20]];
        yield '503' => [['status' => 503, 'delayMs' => 20]];
    }

    /**
     * @dataProvider passing
     * @param array<string, mixed> $failure
     */
    public function testAFailureThatPassesIsTriedAgainAtOnceWithTheSameIdsAndAFreshSentAt(array $failure): void
    {
        $receiver = $this->receiver($failure, []);
        $analytics = $this->analytics($this->to($receiver->url()));
        $analytics->track(['event' => 'E']);
        self::assertTrue($analytics->flush());
        $ids = array_unique(array_column($receiver->calls(), 'messageId'));
        self::assertCount(1, $ids);
        $sentAt = array_map(static fn (array $request): mixed => json_decode($request['body'], true)['sentAt'], $receiver->requests());
        self::assertSame(count($sentAt), count(array_unique($sentAt)));
        self::assertGreaterThan(1, count($sentAt));
        self::assertSame([], $this->spooled());
        self::assertSame([], $this->heard);
    }

    /** @return iterable<string, array{array<string, mixed>, int}> answer, requests at most */
    public static function statuses(): iterable
    {
        yield '500' => [['status' => 500], 2];
        yield '429' => [['status' => 429, 'headers' => ['Retry-After: 60']], 1];
        yield 'a redirect to itself' => [['status' => 307, 'headers' => ['Location: /v1/batch']], 1];
        yield 'a wrong key' => [['status' => 401], 1];
    }

    /**
     * @dataProvider statuses
     * @param array<string, mixed> $answer
     */
    public function testAStatusDrivesRetryAndSpoolAndIsNotHeard(array $answer, int $requestsMax): void
    {
        $receiver = $this->receiver($answer);
        $analytics = $this->analytics($this->to($receiver->url()));
        for ($i = 0; $i < 300; $i++) {
            self::assertTrue($analytics->track(['event' => "E$i"]));
        }
        self::assertCount(300, $this->spooled());
        self::assertLessThanOrEqual($requestsMax, count($receiver->requests()));
        self::assertSame([], $this->heard);
        self::assertSame(0, $analytics->dropped());
    }

    public function testARefusedBatchIsCountedAsLostAndHeard(): void
    {
        $analytics = $this->analytics($this->to($this->receiver(['status' => 400])->url()));
        $analytics->track(['event' => 'E']);
        self::assertFalse($analytics->flush());
        self::assertSame(['calls_dropped'], $this->codes());
        self::assertSame(1, $analytics->dropped());
    }

    public function testASlowServerCostsOneTimeoutAndNotOnePerBatch(): void
    {
        $receiver = $this->receiver(['delayMs' => 60_000]);
        $analytics = $this->analytics(['request_timeout' => 0.5] + $this->to($receiver->url()));
        $began = microtime(true);
        for ($i = 0; $i < 1_000; $i++) {
            $analytics->track(['event' => "E$i"]);
        }
        $analytics->flush();
        self::assertLessThan(4, microtime(true) - $began);
        self::assertCount(1_000, $this->spooled());
        self::assertSame(['timed_out'], $this->codes());
        self::assertCount(1, $receiver->requests());
    }

    public function testBatchesFollowEachOtherWithoutASleepOverOneConnection(): void
    {
        $receiver = $this->receiver();
        $analytics = $this->analytics($this->to($receiver->url()) + ['flush_interval' => 10_000]);
        $began = microtime(true);
        for ($i = 0; $i < 1_000; $i++) {
            $analytics->track(['event' => "E$i"]);
        }
        self::assertTrue($analytics->flush());
        self::assertLessThan(5, microtime(true) - $began);
        self::assertCount(10, $receiver->requests());
        self::assertCount(1, array_unique(array_column($receiver->requests(), 'connection')));
    }

    /** @return iterable<string, array{string}> code before the flush */
    public static function cuts(): iterable
    {
        yield 'a signal handler that exits' => [
            'pcntl_async_signals(true); pcntl_signal(SIGUSR1, fn () => exit(0));'
                . 'proc_open(["/bin/sh", "-c", "sleep 0.3; kill -USR1 $1", "sh", (string) getmypid()], [["file", "/dev/null", "r"]], $pipes);',
        ];
        yield 'the memory limit' => [
            'for ($i = 0; $i < 90; $i++) { $a->track(["event" => "More", "properties" => ["x" => str_repeat("x", 4000)]]); }'
                . 'ini_set("memory_limit", (string) (memory_get_usage(true) + 1)); $full = [];'
                . 'while (memory_get_usage(true) - memory_get_usage() > 300_000) { $full[] = str_repeat("x", 10_000); }',
        ];
    }

    /** @dataProvider cuts */
    public function testWhatAFlushHadInHandIsKeptWhenThePageEndsWithinIt(string $code): void
    {
        $receiver = $this->receiver(['status' => 503, 'delayMs' => 800]);
        $page = '$a = new Millrace\Analytics("wk_test", $options); $a->track(["event" => "E"]);' . $code . '$a->flush(); echo "not cut";';
        [, $said] = Page::run($page, $this->to($receiver->url()) + ['spool' => $this->spool()]);
        self::assertStringNotContainsString('not cut', $said);
        self::assertContains('E', array_column($this->spooled(), 'event'));
    }

    public function testAClientThatIsNoLongerNeededKeepsNoConnection(): void
    {
        $receiver = $this->receiver();
        $opened = static fn (): int => count(scandir('/proc/self/fd') ?: []);
        gc_disable();
        $before = $opened();
        for ($i = 0; $i < 20; $i++) {
            $analytics = $this->analytics($this->to($receiver->url()));
            $analytics->track(['event' => 'E']);
            $analytics->flush();
        }
        gc_enable();
        self::assertLessThan($before + 5, $opened());
        self::assertCount(20, $receiver->calls());
    }

    public function testTwoPagesThatEmptyOneSpoolAtOnceSendNothingTwice(): void
    {
        $lines = '';
        for ($i = 0; $i < 2_000; $i++) {
            $lines .= json_encode(['type' => 'track', 'event' => "Kept$i", 'userId' => 'u1', 'messageId' => "m$i"]) . "\n";
        }
        file_put_contents($this->spool(), $lines);
        $receiver = $this->receiver();
        $code = '$a = new Millrace\Analytics("wk_test", $options); for ($i = 0; $i < 12; $i++) { $a->track(["event" => "New"]); $a->flush(); }';
        $script = "{$this->folder}/page.php";
        $options = $this->to($receiver->url()) + ['spool' => $this->spool()];
        file_put_contents($script, '<?php require ' . var_export(dirname(__DIR__, 2) . '/autoload.php', true) . ';'
            . '$options = ' . var_export($options, true) . ";\n$code");
        $pages = [];
        for ($i = 0; $i < 4; $i++) {
            $pages[] = proc_open([PHP_BINARY, $script], [['file', '/dev/null', 'r'], STDERR, STDERR], $pipes);
        }
        foreach ($pages as $page) {
            self::assertNotFalse($page);
            self::assertSame(0, proc_close($page));
        }
        // Who finds a part in another's hands leaves it: what is left now has nobody's.
        $analytics = $this->analytics($options);
        for ($i = 0; $i < 25; $i++) {
            $analytics->track(['event' => 'New']);
            $analytics->flush();
        }
        $events = array_count_values(array_column($receiver->calls(), 'event'));
        self::assertSame(73, $events['New']);
        unset($events['New']);
        self::assertSame([1], array_values(array_unique($events)));
        self::assertCount(2_000, $events);
        self::assertSame([], glob($this->spool() . '*'));
    }
}

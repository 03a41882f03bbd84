<?php

declare(strict_types=1);

namespace Millrace\Tests\Consumer;

use Millrace\Tests\Support\Page;
use Millrace\Tests\Support\Until;

final class ForkCurlTest extends QueueConsumerTestCase
{
    protected function name(): string
    {
        return 'fork_curl';
    }

    protected function manyCalls(): int
    {
        return 3_000;
    }

    public function testThePageDoesNotWaitForTheServer(): void
    {
        $receiver = $this->receiver(['delayMs' => 2_000]);
        $analytics = $this->analytics($this->to($receiver->url()));
        $analytics->track(['event' => 'E']);
        $began = microtime(true);
        self::assertTrue($analytics->flush());
        self::assertLessThan(1.5, microtime(true) - $began);
        $receiver->waitForCalls(1);
    }

    public function testTheProcessListShowsNeitherKeyNorBody(): void
    {
        $receiver = $this->receiver(['delayMs' => 1_500]);
        $analytics = $this->analytics($this->to($receiver->url()));
        $analytics->track(['event' => 'TellNobody']);
        $analytics->flush();
        $receiver->waitForRequests(1);
        $lines = [];
        foreach (glob('/proc/[0-9]*/cmdline') ?: [] as $file) {
            $lines[] = str_replace("\0", ' ', (string) @file_get_contents($file));
        }
        $children = array_filter($lines, fn (string $line): bool => str_contains($line, $this->folder));
        self::assertNotSame([], $children);
        foreach ([...$children, ...array_filter($lines, static fn (string $line): bool => str_contains($line, 'curl'))] as $line) {
            self::assertStringNotContainsString('wk_test', $line);
            self::assertStringNotContainsString(base64_encode('wk_test:'), $line);
            self::assertStringNotContainsString('TellNobody', $line);
        }
    }

    public function testTheProcessHoldsNoLockOfThePage(): void
    {
        $receiver = $this->receiver(['delayMs' => 2_000]);
        $code = <<<'PHP'
            $held = fopen($options['ca_lock'], 'c');
            flock($held, LOCK_EX);
            $analytics = new Millrace\Analytics('wk_test', $options);
            $analytics->track(['event' => 'E']);
            $analytics->flush();
            fclose($held);
            $again = fopen($options['ca_lock'], 'c');
            echo flock($again, LOCK_EX | LOCK_NB) ? 'free' : 'held';
            PHP;
        $options = $this->to($receiver->url()) + ['spool' => $this->spool(), 'ca_lock' => "{$this->folder}/lock"];
        self::assertSame([0, 'free'], Page::run($code, $options));
        $receiver->waitForCalls(1);
    }

    public function testBodiesAreForTheUserAloneAndGoWithTheProcess(): void
    {
        $receiver = $this->receiver(['delayMs' => 1_000]);
        $analytics = $this->analytics($this->to($receiver->url()));
        $mask = umask(0);
        $analytics->track(['event' => 'E']);
        $analytics->flush();
        umask($mask);
        $files = glob($this->spool() . '.*') ?: [];
        self::assertCount(2, $files);
        foreach ($files as $file) {
            self::assertSame(0o600, fileperms($file) & 0o777);
        }
        Until::true(fn (): bool => glob($this->spool() . '.*') === [], 'an empty folder');
        self::assertCount(1, $receiver->calls());
    }

    public function testABatchTheServerDoesNotTakeIsKept(): void
    {
        foreach ([500, 429, 301, 401, 407] as $status) {
            $analytics = $this->analytics($this->to($this->receiver(['status' => $status])->url()));
            $analytics->track(['event' => "E$status"]);
            $analytics->flush();
            Until::true(fn (): bool => in_array("E$status", array_column($this->spooled(), 'event'), true), "E$status in the spool");
        }
        self::assertSame([], $this->heard);
    }

    public function testABatchTheServerRefusesIsNotKept(): void
    {
        $receiver = $this->receiver(['status' => 400]);
        $analytics = $this->analytics($this->to($receiver->url()));
        $analytics->track(['event' => 'E']);
        $analytics->flush();
        $receiver->waitForRequests(1);
        Until::true(fn (): bool => glob($this->spool() . '.*') === [], 'an empty folder');
        self::assertSame([], $this->heard);
    }

    public function testManyProcessesThatWereKilledDoNotStopItForEver(): void
    {
        for ($i = 0; $i < 50; $i++) {
            $call = ['type' => 'track', 'event' => 'Left', 'userId' => 'u1', 'messageId' => "m$i"];
            foreach (['sending' => json_encode($call) . "\n", 'body' => 'x'] as $suffix => $content) {
                file_put_contents("{$this->spool()}.aaaa$i.$suffix", $content);
                touch("{$this->spool()}.aaaa$i.$suffix", time() - 700);
            }
        }
        $receiver = $this->receiver();
        $analytics = $this->analytics($this->to($receiver->url()));
        $analytics->track(['event' => 'New']);
        self::assertTrue($analytics->flush());
        $events = array_count_values(array_column($receiver->waitForCalls(2), 'event'));
        self::assertSame(1, $events['New']);
        self::assertSame(1, $events['Left']);
    }

    public function testASlowServerDoesNotFillTheMachineWithProcesses(): void
    {
        $options = $this->to($this->deadUrl());
        for ($i = 0; $i < 50; $i++) {
            touch("{$this->spool()}.aaaa$i.body");
        }
        $analytics = $this->analytics($options);
        $analytics->track(['event' => 'E']);
        self::assertFalse($analytics->flush());
        self::assertSame(['E'], array_column($this->spooled(), 'event'));
    }

    public function testAMachineWithoutCurlIsToldAndLosesNothing(): void
    {
        ini_set('error_log', '/dev/null');
        $path = (string) getenv('PATH');
        putenv("PATH={$this->folder}");
        try {
            foreach ([false, true] as $debug) {
                $analytics = $this->analytics($this->to($this->deadUrl()) + ['debug' => $debug]);
                self::assertSame(!$debug, $analytics->track(['event' => 'E']));
                self::assertSame($debug, $analytics->flush());
            }
        } finally {
            putenv("PATH=$path");
        }
        self::assertSame(['process_failed', 'process_failed'], $this->codes());
        self::assertCount(2, $this->spooled());
    }

    public function testWithoutASpoolNothingIsLeftBehind(): void
    {
        $receiver = $this->receiver(['status' => 500]);
        $analytics = $this->analytics(['spool' => false] + $this->to($receiver->url()));
        $analytics->track(['event' => 'E']);
        self::assertTrue($analytics->flush());
        $receiver->waitForRequests(1);
        self::assertSame([], $this->spooled());
    }
}

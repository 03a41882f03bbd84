<?php

/** What lib_curl and fork_curl promise beyond: batches, their limits, and a spool that empties itself. */

declare(strict_types=1);

namespace Millrace\Tests\Consumer;

use Millrace\Batch;
use Millrace\Tests\Support\Page;

abstract class QueueConsumerTestCase extends NetworkConsumerTestCase
{
    public function testABatchGoesEveryHundredCallsAndTheRestAtFlush(): void
    {
        $receiver = $this->receiver();
        $analytics = $this->analytics($this->to($receiver->url()));
        for ($i = 0; $i < 99; $i++) {
            $analytics->track(['event' => "E$i"]);
        }
        self::assertSame([], $receiver->requests());
        $analytics->track(['event' => 'E99']);
        self::assertCount(100, $receiver->waitForCalls(100));
        self::assertCount(1, $receiver->requests());
        $analytics->track(['event' => 'E100']);
        self::assertTrue($analytics->flush());
        $receiver->waitForCalls(101);
        self::assertCount(2, $receiver->requests());
    }

    public function testNoBodyIsOverTheLimitAndNoCallIsMissing(): void
    {
        $receiver = $this->receiver();
        $analytics = $this->analytics($this->to($receiver->url()));
        for ($i = 0; $i < 60; $i++) {
            self::assertTrue($analytics->track(['event' => "E$i", 'properties' => ['x' => str_repeat('x', 32_000)]]));
        }
        $analytics->flush();
        $calls = $receiver->waitForCalls(60);
        self::assertCount(60, array_unique(array_column($calls, 'event')));
        $bytes = array_column($receiver->requests(), 'bytes');
        self::assertLessThanOrEqual(Batch::BYTES_MAX, max($bytes));
        self::assertGreaterThan(400_000, max($bytes));
    }

    public function testPathsAreThoseOfWhereThePageBegan(): void
    {
        $code = <<<'PHP'
            chdir($options['logger']);
            $analytics = new Millrace\Analytics('wk_test', ['logger' => null, 'spool' => 'spool.ndjson'] + $options);
            $analytics->track(['userId' => 'u1', 'event' => 'E']);
            chdir('/');
            PHP;
        $receiver = $this->receiver(['status' => 503]);
        self::assertSame([0, ''], Page::run($code, $this->to($receiver->url()) + ['logger' => $this->folder]));
        $this->waitForSpooled(1);
        self::assertSame('E', $receiver->calls()[0]['event']);
    }

    public function testCallsOverTheQueueAreRefusedAndCountedAndTheQueueHasNoneMore(): void
    {
        $receiver = $this->receiver();
        $analytics = $this->analytics($this->to($receiver->url()) + ['max_queue_size' => 10]);
        $taken = [];
        for ($i = 0; $i < 13; $i++) {
            $taken[] = $analytics->track(['event' => "E$i"]);
        }
        self::assertSame(10, count(array_filter($taken)));
        self::assertSame(['queue_full', 'queue_full', 'queue_full'], $this->codes());
        self::assertSame(3, $analytics->dropped());
        $analytics->flush();
        self::assertCount(10, $receiver->waitForCalls(10));
        self::assertTrue($analytics->track(['event' => 'Again']));
    }

    public function testWhatWasKeptIsSentWhenTheServerIsBack(): void
    {
        $dead = $this->analytics($this->to($this->deadUrl()));
        $dead->track(['event' => 'Early', 'messageId' => 'kept']);
        $dead->flush();
        $this->waitForSpooled(1);
        $receiver = $this->receiver();
        $analytics = $this->analytics($this->to($receiver->url()));
        $analytics->track(['event' => 'Late']);
        $analytics->flush();
        $calls = $receiver->waitForCalls(2);
        self::assertSame('kept', array_column($calls, 'messageId', 'event')['Early']);
        $receiver->waitForRequests(2);
        \Millrace\Tests\Support\Until::true(fn (): bool => glob($this->spool() . '*') === [], 'an empty spool');
    }

    public function testAWholeSpoolIsSentBatchByBatch(): void
    {
        $lines = '';
        for ($i = 0; $i < 250; $i++) {
            $lines .= json_encode(['type' => 'track', 'event' => "Kept$i", 'userId' => 'u1', 'messageId' => "m$i"]) . "\n";
        }
        file_put_contents($this->spool(), $lines . "not json\n");
        $receiver = $this->receiver();
        $analytics = $this->analytics($this->to($receiver->url()));
        for ($i = 0; $i < 4; $i++) {
            $analytics->track(['event' => "New$i"]);
            $analytics->flush();
        }
        self::assertCount(254, array_unique(array_column($receiver->waitForCalls(254), 'event')));
        \Millrace\Tests\Support\Until::true(fn (): bool => glob($this->spool() . '*') === [], 'an empty spool');
    }

    public function testASpoolThatIsFullLosesWhatComesAndSaysSo(): void
    {
        $analytics = $this->analytics($this->to($this->deadUrl()) + ['spool_max_bytes' => 0, 'debug' => true]);
        ini_set('error_log', '/dev/null');
        self::assertFalse($analytics->track(['event' => 'E']));
        self::assertContains('calls_dropped', $this->codes());
        self::assertSame(1, $analytics->dropped());
    }
}

<?php

declare(strict_types=1);

namespace Millrace\Tests;

use Millrace\Batch;
use Millrace\OptionReader;
use Millrace\Reporter;
use Millrace\Spool;
use Millrace\Tests\Support\LibraryTestCase;

final class SpoolTest extends LibraryTestCase
{
    public function testAPartThatACrashLeftIsGoneOnWithWhereItStood(): void
    {
        $lines = self::lines(0, 5);
        $done = strlen(self::lines(0, 2));
        file_put_contents("{$this->spool()}.aaaa.$done.part", $lines);
        self::assertSame(['m2', 'm3', 'm4'], $this->drained($this->made()));
        self::assertSame([], glob($this->spool() . '*'));
    }

    public function testAPartThatSomebodySendsIsLeftToHim(): void
    {
        $path = "{$this->spool()}.aaaa.0.part";
        file_put_contents($path, self::lines(0, 5));
        $held = fopen($path, 'rb');
        self::assertNotFalse($held);
        flock($held, LOCK_EX);
        self::assertSame([], $this->drained($this->made()));
        fclose($held);
        self::assertSame(['m0', 'm1', 'm2', 'm3', 'm4'], $this->drained($this->made()));
    }

    public function testABatchThatAKilledProcessLeftIsSentAfterAWhile(): void
    {
        $path = "{$this->spool()}.bbbb.sending";
        file_put_contents($path, self::lines(0, 2));
        file_put_contents("{$this->spool()}.cccc.body", 'x');
        self::assertSame([], $this->drained($this->made()));
        touch($path, time() - 700);
        touch("{$this->spool()}.cccc.body", time() - 700);
        clearstatcache();
        self::assertSame(['m0', 'm1'], $this->drained($this->made()));
        self::assertSame([], glob($this->spool() . '*'));
    }

    public function testWhatIsNotSettledStays(): void
    {
        $spool = $this->made();
        $spool->keep(new Batch(explode("\n", trim(self::lines(0, 3)))), 'a test');
        $spool->next(static fn (Batch $batch): bool => false);
        $spool->keep(new Batch(explode("\n", trim(self::lines(3, 4)))), 'a test');
        self::assertSame(['m0', 'm1', 'm2', 'm3'], $this->drained($spool));
    }

    public function testSmallBatchesWalkThroughAPartAndNoLineIsSkipped(): void
    {
        file_put_contents($this->spool(), self::lines(0, 7) . "\n\nrubbish\n" . self::lines(7, 8) . '{"cut":');
        $ids = $this->drained($this->made(['batch_size' => 2]));
        self::assertSame(['m0', 'm1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7'], $ids);
        self::assertSame([], glob($this->spool() . '*'));
    }

    public function testALineThatNoRequestHoldsCostsNoOther(): void
    {
        $long = json_encode(['type' => 'track', 'messageId' => 'long', 'event' => str_repeat('x', Batch::BYTES_MAX)]) . "\n";
        file_put_contents($this->spool(), $long . self::lines(0, 2) . $long . self::lines(2, 3));
        self::assertSame(['m0', 'm1', 'm2'], $this->drained($this->made()));
    }

    public function testItTakesNoMoreThanItsBytes(): void
    {
        $line = self::lines(0, 1);
        $spool = $this->made(['spool_max_bytes' => 2 * strlen($line)]);
        foreach (range(0, 2) as $ignored) {
            $spool->keep(new Batch([trim($line)]), 'a test');
        }
        self::assertCount(2, $this->spooled());
        self::assertSame(['calls_dropped'], $this->codes());
    }

    public function testItIsForItsUserAloneAlsoInAFolderNobodyNamed(): void
    {
        $spool = new Spool((new OptionReader(['host' => 'http://' . bin2hex(random_bytes(8)) . '.example']))->options('wk'), $this->reporter());
        $spool->keep(new Batch([trim(self::lines(0, 1))]), 'a test');
        self::assertSame(0o600, fileperms($spool->path()) & 0o777);
        self::assertSame(0o700, fileperms(dirname($spool->path())) & 0o777);
        self::assertStringNotContainsString('wk', basename($spool->path()));
        unlink($spool->path());
    }

    /** @param array<string, mixed> $options */
    private function made(array $options = []): Spool
    {
        return new Spool((new OptionReader($options + ['spool' => $this->spool()]))->options('wk'), $this->reporter());
    }

    private function reporter(): Reporter
    {
        return new Reporter(function (string $code, string $message): void {
            $this->heard[] = [$code, $message];
        });
    }

    /** @return list<string> message ids in the order in which they would be sent */
    private function drained(Spool $spool): array
    {
        $ids = [];
        do {
            $count = count($ids);
            $spool->next(static function (Batch $batch) use (&$ids): bool {
                foreach ($batch->calls as $call) {
                    $ids[] = json_decode($call, true, 512, JSON_THROW_ON_ERROR)['messageId'];
                }
                return true;
            });
        } while (count($ids) > $count);
        return $ids;
    }

    private static function lines(int $from, int $until): string
    {
        $lines = '';
        for ($i = $from; $i < $until; $i++) {
            $lines .= json_encode(['type' => 'track', 'event' => 'E', 'messageId' => "m$i"]) . "\n";
        }
        return $lines;
    }
}

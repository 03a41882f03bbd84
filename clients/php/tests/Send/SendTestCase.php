<?php

/** A folder of its own for each test, and runs of send.php in this process. */

declare(strict_types=1);

namespace Millrace\Tests\Send;

use Millrace\Http\Sender;
use Millrace\Send\Attempts;
use Millrace\Send\Progress;
use Millrace\Send\Report;
use Millrace\Send\Run;
use PHPUnit\Framework\TestCase;

abstract class SendTestCase extends TestCase
{
    protected string $folder;
    protected string $log;
    /** @var list<int> milliseconds a run would have waited */
    protected array $pauses = [];

    protected function setUp(): void
    {
        $this->folder = sys_get_temp_dir() . '/millrace-send-' . bin2hex(random_bytes(6));
        mkdir($this->folder, 0o700);
        $this->log = "{$this->folder}/analytics.log";
    }

    protected function tearDown(): void
    {
        foreach ($this->files() as $name) {
            unlink("{$this->folder}/$name");
        }
        rmdir($this->folder);
    }

    protected function runWith(Sender $sender, int $batchSize = 100): Report
    {
        $attempts = new Attempts($sender, function (int $ms): void {
            $this->pauses[] = $ms;
        });

        return (new Run($this->log, $batchSize, $attempts, new Progress(STDERR, false)))->start();
    }

    /** @return list<string> names in the folder, but for the lock that stays */
    protected function files(bool $withLock = true): array
    {
        $names = array_diff(scandir($this->folder) ?: [], ['.', '..', $withLock ? '' : 'analytics.log.lock']);

        return array_values($names);
    }

    protected static function line(int $number, string $padding = ''): string
    {
        $call = ['type' => 'track', 'messageId' => "m$number", 'userId' => 'u1', 'event' => 'Counted'];

        return json_encode($call + ['properties' => ['n' => $number, 'padding' => $padding]], JSON_THROW_ON_ERROR) . "\n";
    }

    protected static function lines(int $from, int $until): string
    {
        return implode('', array_map(static fn (int $n): string => self::line($n), range($from, $until - 1)));
    }

    /** @return list<string> */
    protected static function ids(int $from, int $until): array
    {
        return array_map(static fn (int $n): string => "m$n", range($from, $until - 1));
    }

    /** @return list<array<string, mixed>> */
    protected function rejects(): array
    {
        $lines = file("{$this->log}.rejects", FILE_IGNORE_NEW_LINES) ?: [];
        /** @var list<array<string, mixed>> $rejects */
        $rejects = array_map(static fn (string $line): mixed => json_decode($line, true, 512, JSON_THROW_ON_ERROR), $lines);

        return $rejects;
    }
}

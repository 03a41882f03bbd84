<?php

declare(strict_types=1);

namespace Millrace\Tests;

use Millrace\Outcome;
use PHPUnit\Framework\TestCase;

final class OutcomeTest extends TestCase
{
    /** @return iterable<string, array{list<int>, Outcome}> */
    public static function statuses(): iterable
    {
        yield 'every 2xx is success' => [[200, 201, 202, 204, 299], Outcome::Accepted];
        yield 'what may pass' => [[0, 100, 408, 429, 500, 502, 503, 504, 599], Outcome::Unavailable];
        yield 'a wrong address or key' => [[301, 302, 303, 304, 307, 308, 401, 403, 404, 405, 407], Outcome::Misdirected];
        yield 'a batch that is wrong' => [[400, 402, 406, 410, 413, 415, 422, 428, 430, 499], Outcome::Refused];
    }

    /**
     * @dataProvider statuses
     * @param list<int> $statuses
     */
    public function testAStatusDecides(array $statuses, Outcome $outcome): void
    {
        foreach ($statuses as $status) {
            self::assertSame($outcome, Outcome::fromStatus($status), "status $status");
        }
    }

    /** The shell script of fork_curl has a table of its own. */
    public function testTheProcessOfForkCurlDecidesAlike(): void
    {
        $source = (string) file_get_contents(__DIR__ . '/../src/Http/CurlProcess.php');
        self::assertSame(1, preg_match('/^\s*(2\?\?\|\S+)\) rm /m', $source, $found));
        $script = 'while read -r code; do case "$code" in ' . $found[1] . ') echo gone ;; *) echo kept ;; esac; done';
        $process = proc_open(['/bin/sh', '-c', $script], [['pipe', 'r'], ['pipe', 'w'], STDERR], $pipes);
        self::assertNotFalse($process);
        $statuses = range(100, 599);
        fwrite($pipes[0], "000\n" . implode("\n", $statuses) . "\n");
        fclose($pipes[0]);
        $said = explode("\n", trim((string) stream_get_contents($pipes[1])));
        proc_close($process);
        foreach ([0, ...$statuses] as $index => $status) {
            self::assertSame(Outcome::fromStatus($status)->keeps() ? 'kept' : 'gone', $said[$index], "status $status");
        }
    }
}

<?php

/** Cuts the lines of a log into batches, and says of each how far the log is settled once it is. */

declare(strict_types=1);

namespace Millrace\Send;

use Millrace\Batch;

final class Batches
{
    /**
     * @param iterable<Line> $lines
     * @param \Closure(Reject): void $reject told of each line that is no call, in its turn
     * @return \Generator<int, LogBatch> by the position where the lines of the batch end; the last may be empty
     */
    public static function of(iterable $lines, string $log, int $callsMax, \Closure $reject): \Generator
    {
        $calls = [];
        $bytes = Batch::envelopeBytes();
        $end = null;
        foreach ($lines as $line) {
            $call = trim($line->text) === '' && $line->piece === 0 ? null : Call::read($line, $log, LogBatch::lineBytesMax());
            if ($call instanceof Call) {
                $more = strlen($call->json) + 1;
                if ($calls !== [] && ($bytes + $more > Batch::BYTES_MAX || count($calls) >= $callsMax)) {
                    yield $end ?? $line->start => new LogBatch($calls);
                    $calls = [];
                    $bytes = Batch::envelopeBytes();
                }
                $calls[] = $call;
                $bytes += $more;
            } elseif ($call instanceof Reject) {
                $reject($call);
            }
            // Within a line that comes in pieces there is no place to go on from.
            $end = $line->endsLine ? $line->end : $end;
        }
        if ($end !== null) {
            yield $end => new LogBatch($calls);
        }
    }
}

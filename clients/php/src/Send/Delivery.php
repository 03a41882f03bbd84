<?php

// Settles a batch: each of its calls is accepted, or a reject with its reason; or the batch waits for another run.

declare(strict_types=1);

namespace Millrace\Send;

final class Delivery
{
    /** An answer lists so many rejected calls at most. */
    private const LISTED_MAX = 100;

    /** @param \Closure(Reject): void $reject */
    public function __construct(
        private readonly Attempts $attempts,
        private readonly \Closure $reject,
    ) {
    }

    /** `null` once every call is settled. A part sent twice is no second call: it has the same message ids. */
    public function settle(Batch $batch): ?Verdict
    {
        if ($batch->calls === []) {
            return null;
        }
        $verdict = $this->attempts->send($batch);
        $count = count($batch->calls);
        if ($verdict->kind === Verdict::SETTLED) {
            $isWhole = $verdict->rejectedCount <= count($verdict->codes) || $count <= 1;

            return $isWhole ? $this->settled($batch, $verdict) : $this->inParts($batch, min(self::LISTED_MAX, $count - 1));
        }
        if ($verdict->kind !== Verdict::UNACCEPTABLE) {
            return $verdict;
        }
        if ($count > 1) {
            return $this->inParts($batch, intdiv($count + 1, 2));
        }
        ($this->reject)(new Reject($batch->calls[0]->line, $verdict->code, $verdict->message));

        return null;
    }

    private function settled(Batch $batch, Verdict $verdict): ?Verdict
    {
        foreach ($verdict->codes as $index => $code) {
            if (isset($batch->calls[$index])) {
                ($this->reject)(new Reject($batch->calls[$index]->line, $code, 'the collector rejected the call'));
            }
        }

        return null;
    }

    private function inParts(Batch $batch, int $size): ?Verdict
    {
        foreach ($batch->split($size) as $part) {
            $verdict = $this->settle($part);
            if ($verdict !== null) {
                return $verdict;
            }
        }

        return null;
    }
}

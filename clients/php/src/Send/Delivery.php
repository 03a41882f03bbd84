<?php

/** Settles a batch: each of its calls is accepted, or a reject with its reason; or the batch waits for another run. */

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

    /**
     * A part sent twice is no second call: it has the same message ids.
     *
     * @param list<Call> $calls
     * @return Verdict|null null once every call is settled
     */
    public function settle(array $calls): ?Verdict
    {
        if ($calls === []) {
            return null;
        }
        $verdict = $this->attempts->send(LogBatch::request($calls));
        $count = count($calls);
        if ($verdict->kind === Verdict::SETTLED) {
            if ($verdict->rejectedCount > count($verdict->codes) && $count > 1) {
                return $this->inParts($calls, min(self::LISTED_MAX, $count - 1));
            }
            $this->rejectEach($calls, $verdict);

            return null;
        }
        if ($verdict->kind !== Verdict::UNACCEPTABLE) {
            return $verdict;
        }
        if ($count > 1) {
            return $this->inParts($calls, intdiv($count + 1, 2));
        }
        ($this->reject)(new Reject($calls[0]->line, $verdict->code, $verdict->message));

        return null;
    }

    /** @param list<Call> $calls */
    private function rejectEach(array $calls, Verdict $verdict): void
    {
        foreach ($verdict->codes as $index => $code) {
            if (isset($calls[$index])) {
                ($this->reject)(new Reject($calls[$index]->line, $code, 'the collector rejected the call'));
            }
        }
    }

    /** @param list<Call> $calls */
    private function inParts(array $calls, int $size): ?Verdict
    {
        foreach (array_chunk($calls, max(1, $size)) as $part) {
            $verdict = $this->settle($part);
            if ($verdict !== null) {
                return $verdict;
            }
        }

        return null;
    }
}

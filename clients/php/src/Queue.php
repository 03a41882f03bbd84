<?php

/** Calls that wait for their batch, bounded in number; their bytes are a running sum. */

declare(strict_types=1);

namespace Millrace;

final class Queue
{
    /** @var list<string> */
    private array $calls = [];
    private int $bytes = 0;

    /** @var array<int, list<string>> what drains have in hand */
    private array $inHand = [];
    private int $drains = 0;
    private int $process;

    public function __construct(private readonly int $callsMax)
    {
        $this->process = (int) getmypid();
    }

    public function add(string $call): bool
    {
        $this->leaveToParent();
        if (count($this->calls) >= $this->callsMax) {
            return false;
        }
        $this->calls[] = $call;
        $this->bytes += strlen($call) + 1;
        return true;
    }

    public function isReady(int $batchSize): bool
    {
        // The next call could be as long as a call may be: what waits would then no longer fit one request.
        return count($this->calls) >= $batchSize
            || $this->bytes + Batch::envelopeBytes() + Batch::CALL_BYTES_MAX > Batch::BYTES_MAX;
    }

    /**
     * Gives all that waits to $settle, which finds an empty queue, and forgets it when that returns.
     *
     * @param callable(list<string>): bool $settle
     */
    public function drain(callable $settle): bool
    {
        $this->leaveToParent();
        $drain = ++$this->drains;
        $this->inHand[$drain] = $this->calls;
        $this->calls = [];
        $this->bytes = 0;
        $isSettled = $settle($this->inHand[$drain]);
        unset($this->inHand[$drain]);
        return $isSettled;
    }

    /** For when no drain can be running any more: what those had in hand that never returned waits again. */
    public function takeBack(): void
    {
        $this->leaveToParent();
        $this->calls = array_merge(...$this->inHand, ...[$this->calls]);
        $this->inHand = [];
    }

    /** What a forked child finds here is a copy of what its parent will send. */
    private function leaveToParent(): void
    {
        $process = (int) getmypid();
        if ($this->process !== $process) {
            $this->process = $process;
            $this->calls = [];
            $this->inHand = [];
            $this->bytes = 0;
        }
    }
}

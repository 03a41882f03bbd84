<?php

/** Calls that wait for their batch, bounded in number; their bytes are a running sum. */

declare(strict_types=1);

namespace Millrace;

final class Queue
{
    /** @var list<string> */
    private array $calls = [];
    private int $bytes = 0;

    public function __construct(private readonly int $callsMax)
    {
    }

    public function add(string $call): bool
    {
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

    /** @return list<string> all of them, which then wait no longer */
    public function takeAll(): array
    {
        $calls = $this->calls;
        $this->calls = [];
        $this->bytes = 0;
        return $calls;
    }
}

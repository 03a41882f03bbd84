<?php

/** Calls of a log that go in one request, in its order, each with the line it came from. */

declare(strict_types=1);

namespace Millrace\Send;

use Millrace\Batch;

final class LogBatch
{
    /** What a message id that a line lacked may add to it. */
    private const NAMED_BYTES = 100;

    /** @param list<Call> $calls */
    public function __construct(
        public readonly array $calls,
    ) {
    }

    /** What one line may have, so that it fits into a request of its own. */
    public static function lineBytesMax(): int
    {
        return Batch::BYTES_MAX - Batch::envelopeBytes() - self::NAMED_BYTES;
    }

    /** @param non-empty-list<Call> $calls */
    public static function request(array $calls): Batch
    {
        return new Batch(array_map(static fn (Call $call): string => $call->json, $calls));
    }
}

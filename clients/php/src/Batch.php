<?php

/** Calls that travel in one request, each already JSON, together with the envelope around them. */

declare(strict_types=1);

namespace Millrace;

final class Batch
{
    /** The largest body the server promises to take, envelope included. */
    public const BYTES_MAX = 500_000;

    /** A call as long as this, or longer, is refused: it must stay below. */
    public const CALL_BYTES_MAX = 32_768;

    /** The most calls the server takes in one request. */
    public const CALLS_MAX = 2_500;

    private const HEAD = '{"batch":[';
    private const TAIL = '],"sentAt":"2000-01-01T00:00:00.000Z"}';

    /** @param non-empty-list<string> $calls one JSON object each */
    public function __construct(public readonly array $calls)
    {
    }

    /**
     * Puts calls into as few batches as order allows, none over the limits.
     *
     * @param iterable<string> $calls one JSON object each, each shorter than CALL_BYTES_MAX
     * @return \Generator<int, self>
     */
    public static function pack(iterable $calls, int $callsMax = 100): \Generator
    {
        $packed = [];
        $bytes = self::envelopeBytes();
        foreach ($calls as $call) {
            $more = strlen($call) + 1;
            if ($packed !== [] && (count($packed) >= $callsMax || $bytes + $more > self::BYTES_MAX)) {
                yield new self($packed);
                $packed = [];
                $bytes = self::envelopeBytes();
            }
            $packed[] = $call;
            $bytes += $more;
        }
        if ($packed !== []) {
            yield new self($packed);
        }
    }

    public static function envelopeBytes(): int
    {
        return strlen(self::HEAD) + strlen(self::TAIL);
    }

    public function count(): int
    {
        return count($this->calls);
    }

    /** The request's body. Each attempt asks anew, since the server corrects clocks by `sentAt`. */
    public function body(?\DateTimeImmutable $sentAt = null): string
    {
        $tail = '],"sentAt":"' . Timestamp::format($sentAt ?? new \DateTimeImmutable()) . '"}';
        return self::HEAD . implode(',', $this->calls) . $tail;
    }

    /** The same calls as a log file has them: exactly one JSON object per line. */
    public function lines(): string
    {
        return implode("\n", $this->calls) . "\n";
    }
}

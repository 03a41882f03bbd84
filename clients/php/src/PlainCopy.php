<?php

/**
 * Copies what a host put into one call: dates become text, and nothing of the host's own is written to. What can
 * never fit a call, such as an array that holds itself twice, is refused before it costs the page time and memory.
 */

declare(strict_types=1);

namespace Millrace;

final class PlainCopy
{
    /** The server's own limit. */
    public const DEPTH_MAX = 64;

    /** No value has fewer bytes in JSON than are counted here: one each, and its characters. */
    private int $bytes = 0;

    public function __construct(private readonly string $type)
    {
    }

    public function of(mixed $value, int $depth = 0): mixed
    {
        $this->count(is_string($value) ? strlen($value) : 1);
        // PHP's own JSON for a date is an object of three parts that nobody downstream understands.
        if ($value instanceof \DateTimeInterface) {
            return Timestamp::format($value);
        }
        // Deeper ones are for json_encode to refuse.
        if ($depth > self::DEPTH_MAX) {
            return $value;
        }
        if (is_object($value)) {
            return $value::class === \stdClass::class ? (object) $this->each((array) $value, $depth) : $value;
        }
        return is_array($value) ? $this->each($value, $depth) : $value;
    }

    /**
     * A new array, because the host's may hold references: to write into it would change the host's variables.
     *
     * @param array<mixed> $values
     * @return array<mixed>
     */
    private function each(array $values, int $depth): array
    {
        $copy = [];
        foreach ($values as $key => $value) {
            $this->count(is_string($key) ? strlen($key) : 0);
            $copy[$key] = $this->of($value, $depth + 1);
        }
        return $copy;
    }

    private function count(int $bytes): void
    {
        $this->bytes += $bytes;
        if ($this->bytes >= Batch::CALL_BYTES_MAX) {
            throw Refusal::tooLarge($this->type, 'over ' . Batch::CALL_BYTES_MAX);
        }
    }
}

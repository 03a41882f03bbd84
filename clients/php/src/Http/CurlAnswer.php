<?php

/** What curl reads of one answer. */

declare(strict_types=1);

namespace Millrace\Http;

final class CurlAnswer
{
    /** An answer names at most 100 rejected calls; what goes beyond is not ours to read. */
    private const BYTES_MAX = 65_536;

    public string $body = '';
    public ?int $retryAfterSeconds = null;

    public function clear(): void
    {
        $this->body = '';
        $this->retryAfterSeconds = null;
    }

    public function read(string $part): int
    {
        $this->body .= substr($part, 0, self::BYTES_MAX - strlen($this->body));
        return strlen($part);
    }

    public function readHeader(string $line): int
    {
        $this->retryAfterSeconds = RetryAfter::read($line) ?? $this->retryAfterSeconds;
        return strlen($line);
    }
}

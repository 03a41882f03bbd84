<?php

/** How long the server asks to be left alone. */

declare(strict_types=1);

namespace Millrace\Http;

final class RetryAfter
{
    private const SECONDS_MAX = 300;

    private function __construct()
    {
    }

    /** @param string $line any line of the answer's head; null where it is another header */
    public static function read(string $line): ?int
    {
        if (preg_match('/^retry-after:\s*(\d{1,9})\s*$/i', $line, $found) !== 1) {
            return null;
        }
        return min(self::SECONDS_MAX, max(1, (int) $found[1]));
    }
}

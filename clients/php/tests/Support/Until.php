<?php

/** Waits for a condition, and tells what did not come. */

declare(strict_types=1);

namespace Millrace\Tests\Support;

final class Until
{
    /** @param callable(): bool $holds */
    public static function true(callable $holds, string $what, float $seconds = 30.0): void
    {
        $deadline = microtime(true) + $seconds;
        while (!$holds()) {
            if (microtime(true) > $deadline) {
                throw new \RuntimeException("waited $seconds s in vain for $what");
            }
            usleep(10_000);
        }
    }
}

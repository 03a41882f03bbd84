<?php

/** A clock for deadlines: it only goes forward, whatever happens to the time of day. */

declare(strict_types=1);

namespace Millrace;

final class Clock
{
    private function __construct()
    {
    }

    public static function seconds(): float
    {
        return hrtime(true) / 1_000_000_000;
    }
}

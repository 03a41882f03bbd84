<?php

/** One line of a log, or a piece of a line too long to be held. */

declare(strict_types=1);

namespace Millrace\Send;

final class Line
{
    public function __construct(
        public readonly int $start,
        /** Where the next line starts. */
        public readonly int $end,
        /** Without its line feed. */
        public readonly string $text,
        /** Counted from 1 in a line that is longer than may be held; 0 for a whole line. */
        public readonly int $piece = 0,
        /** A piece that another follows does not end its line. */
        public readonly bool $endsLine = true,
    ) {
    }
}

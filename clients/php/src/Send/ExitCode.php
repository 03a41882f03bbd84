<?php

/** What a run of send.php tells whoever started it; docs/php.md has the table. */

declare(strict_types=1);

namespace Millrace\Send;

enum ExitCode: int
{
    /** Every line was accepted, or there was none. */
    case Done = 0;
    /** Every line is settled, and some are in the rejects file. */
    case Rejected = 1;
    case Usage = 2;
    /** The log is kept; the next run goes on where this one stopped. */
    case Temporary = 3;
    /** The log is kept, and the next run will fare no better: the key or the address is wrong. */
    case Refused = 4;
    /** A file could not be read, written, renamed or removed. */
    case Files = 5;
    /** Another run is at this log. */
    case Busy = 6;
}

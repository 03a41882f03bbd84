<?php

/** What became of a batch that was sent: the whole policy of answers, in one place. */

declare(strict_types=1);

namespace Millrace;

enum Outcome
{
    /** The server has the calls. */
    case Accepted;

    /** It may take them later: no answer, 408, 429 or 5xx. Tried again, then kept in the spool. */
    case Unavailable;

    /**
     * It is the wrong address, key or proxy: a redirect, 401, 403, 404, 405, 407. Trying again helps nothing, but the
     * calls themselves are fine, so they are kept in the spool until somebody has put it right.
     */
    case Misdirected;

    /** It will never take this batch, whoever asks: every other status. */
    case Refused;

    /** @param int $status status of the answer, 0 where there was none */
    public static function fromStatus(int $status): self
    {
        return match (true) {
            $status >= 200 && $status < 300 => self::Accepted,
            $status < 200, $status === 408, $status === 429, $status >= 500 => self::Unavailable,
            $status < 400, in_array($status, [401, 403, 404, 405, 407], true) => self::Misdirected,
            default => self::Refused,
        };
    }

    /** Whether the calls are worth keeping although they were not accepted. */
    public function keeps(): bool
    {
        return $this === self::Unavailable || $this === self::Misdirected;
    }
}

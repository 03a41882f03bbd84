<?php

/**
 * Leaves a server alone for a while that did not answer or asked for it. Without it a page with fifty calls would
 * wait fifty timeouts for a dead one; with it the first call waits, and the others go to the spool.
 */

declare(strict_types=1);

namespace Millrace;

use Millrace\Http\Reply;

final class Rest
{
    private const UNANSWERED_SECONDS = 5;
    private const UNAVAILABLE_SECONDS = 1;

    private float $until = 0.0;

    public function isOn(): bool
    {
        return Clock::seconds() < $this->until;
    }

    public function after(Reply $reply): void
    {
        $seconds = match ($reply->outcome()) {
            Outcome::Accepted, Outcome::Refused => 0,
            Outcome::Misdirected => self::UNANSWERED_SECONDS,
            Outcome::Unavailable => $reply->retryAfterSeconds
                ?? ($reply->status === 0 ? self::UNANSWERED_SECONDS : self::UNAVAILABLE_SECONDS),
        };
        $this->until = $seconds === 0 ? 0.0 : Clock::seconds() + $seconds;
    }
}

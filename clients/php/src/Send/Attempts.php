<?php

/** Sends one batch, and again a few times while the trouble may pass. */

declare(strict_types=1);

namespace Millrace\Send;

use Millrace\Batch;
use Millrace\Http\Sender;

final class Attempts
{
    private const TRIES_MAX = 4;
    private const FIRST_PAUSE_MS = 500;
    /** Longer waits are left to the next run. */
    private const PAUSE_MAX_MS = 30_000;

    /** @var \Closure(int): void */
    private readonly \Closure $pause;

    /** @param (\Closure(int): void)|null $pause takes milliseconds */
    public function __construct(
        private readonly Sender $sender,
        ?\Closure $pause = null,
    ) {
        $this->pause = $pause ?? static function (int $ms): void {
            usleep(max(0, $ms) * 1_000);
        };
    }

    public function send(Batch $batch): Verdict
    {
        $retry = 0;
        while (true) {
            $reply = $this->sender->send($batch);
            $verdict = Verdict::of($reply);
            $pauseMs = self::pauseMs($verdict, $retry);
            // A server that let us wait in vain has had its time; the next run comes soon.
            $isOver = $reply->isTimeout || $retry + 1 >= self::TRIES_MAX || $pauseMs > self::PAUSE_MAX_MS;
            if ($verdict->kind !== Verdict::TEMPORARY || $isOver) {
                return $verdict;
            }
            ($this->pause)($pauseMs);
            $retry++;
        }
    }

    /** Half of it is drawn, so that machines that lost their collector do not come back together. */
    private static function pauseMs(Verdict $verdict, int $retry): int
    {
        if ($verdict->retryAfterSeconds !== null) {
            return $verdict->retryAfterSeconds * 1_000;
        }
        $half = (self::FIRST_PAUSE_MS << $retry) >> 1;

        return $half + random_int(0, $half);
    }
}

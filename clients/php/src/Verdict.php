<?php

/** Acts on what became of a batch: keeps it, counts it as lost, and tells the host what it is to hear. */

declare(strict_types=1);

namespace Millrace;

use Millrace\Http\Reply;

final class Verdict
{
    private const ANSWER_CHARACTERS_SHOWN = 200;

    public function __construct(private readonly Reporter $reporter, private readonly Spool $spool)
    {
    }

    /**
     * The host hears of connection errors and of lost calls; of statuses only under debug, as they merely decide
     * between spool and loss.
     *
     * @return bool whether the server has the whole batch
     */
    public function on(Batch $batch, Reply $reply): bool
    {
        $outcome = $reply->outcome();
        if ($outcome === Outcome::Accepted) {
            return !$this->reporter->debug || $this->isWhole($reply);
        }
        $reason = $reply->status === 0 ? $reply->error : self::described($reply);
        if ($outcome === Outcome::Refused) {
            $lost = "{$batch->count()} calls are lost: $reason";
            $this->reporter->drop($batch->count(), ErrorCode::CallsDropped, $lost);
            return false;
        }
        $kept = $this->spool->keep($batch, $reason);
        if ($reply->status === 0) {
            $this->reporter->report($reply->isTimeout ? ErrorCode::TimedOut : ErrorCode::ConnectionFailed, $kept);
        } elseif ($this->reporter->debug) {
            $this->reporter->report(
                $outcome === Outcome::Misdirected ? ErrorCode::ServerMisdirected : ErrorCode::ServerUnavailable,
                $kept . ($outcome === Outcome::Misdirected ? '; check the option host and the write key' : ''),
            );
        }
        return false;
    }

    private function isWhole(Reply $reply): bool
    {
        $rejected = $reply->rejected();
        if ($rejected !== []) {
            $codes = implode(', ', array_unique(array_column($rejected, 'code')));
            $this->reporter->drop(count($rejected), ErrorCode::CallsRejected, "the server rejected calls of the batch: $codes");
        }
        $this->reporter->debug("answered {$reply->status}");
        return $rejected === [];
    }

    private static function described(Reply $reply): string
    {
        $shown = substr($reply->body, 0, self::ANSWER_CHARACTERS_SHOWN);
        return "the server answered {$reply->status}" . ($shown === '' ? '' : ": $shown");
    }
}

<?php

/** What an answer means for the lines that were sent: the whole policy in one place. */

declare(strict_types=1);

namespace Millrace\Send;

use Millrace\Http\Reply;
use Millrace\Outcome;

final class Verdict
{
    public const SETTLED = 'settled';
    /** Something in the batch can never be accepted: sent in parts, the lines at fault are found. */
    public const UNACCEPTABLE = 'unacceptable';
    public const TEMPORARY = 'temporary';
    /** Not the lines but the key or the address is wrong. */
    public const REFUSED = 'refused';

    /** Refusals of 400 that depend on what was in the body; any other may be true of every line. */
    private const CODES_OF_BODIES = ['request_too_large', 'too_many_calls', 'invalid_json', 'malformed_request'];

    /** @param array<int, string> $codes of the calls that were rejected, by their place in the batch */
    private function __construct(
        public readonly string $kind,
        public readonly string $code = '',
        public readonly string $message = '',
        public readonly array $codes = [],
        /** May be more than are listed. */
        public readonly int $rejectedCount = 0,
        public readonly ?int $retryAfterSeconds = null,
    ) {
    }

    public static function of(Reply $reply): self
    {
        $said = json_decode($reply->body, true);
        $said = is_array($said) ? $said : null;
        $text = static fn (string $name): ?string => is_string($said[$name] ?? null) ? $said[$name] : null;
        $code = $text('code') ?? ($reply->status === 0 ? 'no_answer' : "http_{$reply->status}");
        $message = $text('message') ?? ($reply->error !== '' ? $reply->error : "HTTP {$reply->status}");

        $outcome = $reply->outcome();

        return match (true) {
            $outcome === Outcome::Accepted => self::ofAccepted($reply, $said),
            $outcome === Outcome::Unavailable => new self(
                self::TEMPORARY,
                $code,
                $message,
                retryAfterSeconds: $reply->retryAfterSeconds,
            ),
            $reply->status === 400 && in_array($code, self::CODES_OF_BODIES, true)
                => new self(self::UNACCEPTABLE, $code, $message),
            $reply->status < 400
                => new self(self::REFUSED, $code, "the address redirects (HTTP {$reply->status}): name the one it leads to"),
            default => new self(self::REFUSED, $code, $message),
        };
    }

    /** @param array<mixed>|null $said */
    private static function ofAccepted(Reply $reply, ?array $said): self
    {
        // A page that some box on the way puts up is no word of the collector's: nothing is removed on its strength.
        if (($said === null && trim($reply->body) !== '') || ($said['success'] ?? true) !== true) {
            return new self(self::TEMPORARY, 'unreadable_answer', 'the answer is not the collector\'s: is the address right?');
        }
        $codes = array_column($reply->rejected(), 'code', 'index');
        $count = is_int($said['rejectedCount'] ?? null) ? $said['rejectedCount'] : count($codes);

        return new self(self::SETTLED, codes: $codes, rejectedCount: $count);
    }
}

<?php

/** What came back for one batch: an answer with a status, or none and the reason. */

declare(strict_types=1);

namespace Millrace\Http;

use Millrace\Outcome;

final class Reply
{
    /**
     * @param int $status 0 where there was no answer
     * @param string $error why there was no answer, empty where there was one
     * @param int|null $retryAfterSeconds what the server asked for, at most 300
     */
    public function __construct(
        public readonly int $status,
        public readonly string $body = '',
        public readonly string $error = '',
        public readonly ?int $retryAfterSeconds = null,
        public readonly bool $isTimeout = false,
    ) {
    }

    public static function unanswered(string $error, bool $isTimeout = false): self
    {
        return new self(0, '', $error, null, $isTimeout);
    }

    public function outcome(): Outcome
    {
        return Outcome::fromStatus($this->status);
    }

    /**
     * The calls that the server did not take out of a batch it accepted.
     *
     * @return list<array{index: int, code: string}> at most the first 100, as the server names them
     */
    public function rejected(): array
    {
        $answer = json_decode($this->body, true);
        $rejected = [];
        $listed = is_array($answer) ? $answer['rejected'] ?? null : null;
        foreach (is_array($listed) ? $listed : [] as $each) {
            if (is_array($each) && is_int($each['index'] ?? null) && is_string($each['code'] ?? null)) {
                $rejected[] = ['index' => $each['index'], 'code' => $each['code']];
            }
        }
        return $rejected;
    }
}

<?php

// What came back for one request.

declare(strict_types=1);

namespace Millrace\Send;

final class Answer
{
    public function __construct(
        /** 0 where none came; then `error` says why. */
        public readonly int $status,
        public readonly string $body = '',
        public readonly ?int $retryAfterSeconds = null,
        public readonly string $error = '',
    ) {
    }
}

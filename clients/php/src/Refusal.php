<?php

/** Why a call, or a write, was not taken. It travels inside this library only: `Analytics` catches every one. */

declare(strict_types=1);

namespace Millrace;

final class Refusal extends \RuntimeException
{
    public function __construct(public readonly ErrorCode $errorCode, string $message)
    {
        parent::__construct($message);
    }

    public static function tooLarge(string $type, string $bytes): self
    {
        return new self(ErrorCode::CallTooLarge, "This $type() has $bytes bytes; a call must stay below " . Batch::CALL_BYTES_MAX . '.');
    }
}

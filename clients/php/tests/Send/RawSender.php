<?php

/** A sender that keeps the bytes of each body. */

declare(strict_types=1);

namespace Millrace\Tests\Send;

use Millrace\Batch;
use Millrace\Http\Reply;
use Millrace\Http\Sender;

final class RawSender implements Sender
{
    /** @var list<string> */
    public array $bodies = [];

    public function __construct(
        private readonly int $status = 200,
    ) {
    }

    public function send(Batch $batch): Reply
    {
        $this->bodies[] = $batch->body();

        return new Reply($this->status, $this->status === 200 ? '{"success":true}' : '');
    }
}

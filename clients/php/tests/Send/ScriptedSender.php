<?php

/** A sender whose answers are given, and which keeps what was sent. */

declare(strict_types=1);

namespace Millrace\Tests\Send;

use Millrace\Batch;
use Millrace\Http\Reply;
use Millrace\Http\Sender;

final class ScriptedSender implements Sender
{
    /** @var list<list<array<string, mixed>>> the calls of each request */
    public array $sent = [];

    /** @param \Closure(list<array<string, mixed>>, int): Reply $script given the calls and the request's number from 0 */
    public function __construct(
        private readonly \Closure $script,
    ) {
    }

    public static function accepting(): self
    {
        return new self(static fn (): Reply => new Reply(200, '{"success":true}'));
    }

    public function send(Batch $batch): Reply
    {
        /** @var array{batch: list<array<string, mixed>>, sentAt: string} $envelope */
        $envelope = json_decode($batch->body(), true, 512, JSON_THROW_ON_ERROR);
        $this->sent[] = $envelope['batch'];

        return ($this->script)($envelope['batch'], count($this->sent) - 1);
    }

    /** @return list<string> of all requests, in their order */
    public function messageIds(): array
    {
        return array_map(static fn (array $call): string => (string) $call['messageId'], array_merge(...$this->sent));
    }
}

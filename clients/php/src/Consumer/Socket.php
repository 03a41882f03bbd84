<?php

/** Writes each call over a connection of its own and does not wait for the answer, unless debug is on. */

declare(strict_types=1);

namespace Millrace\Consumer;

use Millrace\Batch;
use Millrace\Http\Sender;
use Millrace\Http\SocketSender;
use Millrace\Options;
use Millrace\Reporter;
use Millrace\Rest;
use Millrace\Spool;
use Millrace\Verdict;

final class Socket implements Consumer
{
    private readonly Sender $sender;
    private readonly Spool $spool;
    private readonly Verdict $verdict;
    private readonly Rest $rest;

    public function __construct(private readonly Options $options, Reporter $reporter)
    {
        $this->sender = new SocketSender(
            $options->endpoint,
            $options->timeout,
            $options->debug ? max($options->timeout, $options->requestTimeout) : null,
            $options->gzip,
            $options->caFile,
        );
        $this->spool = new Spool($options, $reporter);
        $this->verdict = new Verdict($reporter, $this->spool);
        $this->rest = new Rest();
    }

    public function name(): string
    {
        return 'socket';
    }

    public function take(string $call): bool
    {
        $batch = new Batch([$call]);
        if (!$this->options->debug && $this->rest->isOn()) {
            $this->spool->keep($batch, 'the server is left alone for a moment');
            return true;
        }
        $reply = $this->sender->send($batch);
        $this->rest->after($reply);
        return $this->verdict->on($batch, $reply);
    }

    public function flush(): bool
    {
        return true;
    }
}

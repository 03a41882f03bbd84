<?php

/** Sends batches from within the page, over one kept connection. */

declare(strict_types=1);

namespace Millrace\Consumer;

use Millrace\Batch;
use Millrace\Clock;
use Millrace\Http\CurlSender;
use Millrace\Http\Reply;
use Millrace\Http\Sender;
use Millrace\Options;
use Millrace\Outcome;
use Millrace\Reporter;
use Millrace\Rest;

final class LibCurl extends QueueConsumer
{
    private readonly Sender $sender;
    private readonly Rest $rest;

    public function __construct(Options $options, Reporter $reporter)
    {
        parent::__construct($options, $reporter);
        $this->sender = new CurlSender(
            $options->endpoint,
            $options->connectTimeout,
            $options->requestTimeout,
            $options->gzip,
            $options->caFile,
        );
        $this->rest = new Rest();
    }

    public function name(): string
    {
        return 'lib_curl';
    }

    protected function dispatch(Batch $batch): bool
    {
        if (!$this->options->debug && $this->rest->isOn()) {
            $this->spool->keep($batch, 'the server is left alone for a moment');
            return false;
        }
        $reply = $this->send($batch);
        $this->rest->after($reply);
        $isWhole = $this->verdict->on($batch, $reply);
        if ($reply->outcome() === Outcome::Accepted) {
            $this->spool->sendNext($this->sender);
        }
        return $isWhole;
    }

    /** Tries again at once, as long as that costs no more than one slow request would. */
    private function send(Batch $batch): Reply
    {
        $deadline = Clock::seconds() + $this->options->requestTimeout;
        $reply = $this->sender->send($batch);
        for ($tried = 0; $tried < $this->options->retries; $tried++) {
            $isWorthIt = $reply->outcome() === Outcome::Unavailable
                && !$reply->isTimeout && $reply->status !== 429 && $reply->retryAfterSeconds === null;
            if (!$isWorthIt || Clock::seconds() >= $deadline) {
                break;
            }
            $reply = $this->sender->send($batch);
        }
        return $reply;
    }
}

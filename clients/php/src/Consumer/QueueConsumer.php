<?php

/** What lib_curl and fork_curl have in common: calls wait in memory until a batch is full or the page ends. */

declare(strict_types=1);

namespace Millrace\Consumer;

use Millrace\Batch;
use Millrace\ErrorCode;
use Millrace\Options;
use Millrace\Queue;
use Millrace\Reporter;
use Millrace\Spool;
use Millrace\Verdict;

abstract class QueueConsumer implements Consumer
{
    private readonly Queue $queue;
    protected readonly Spool $spool;
    protected readonly Verdict $verdict;

    public function __construct(protected readonly Options $options, protected readonly Reporter $reporter)
    {
        $this->queue = new Queue($options->maxQueueSize);
        $this->spool = new Spool($options, $reporter);
        $this->verdict = new Verdict($reporter, $this->spool);
    }

    /** @return bool whether it is on its way */
    abstract protected function dispatch(Batch $batch): bool;

    public function take(string $call): bool
    {
        if (!$this->queue->add($call)) {
            $full = "{$this->options->maxQueueSize} calls are waiting already (option max_queue_size): this one is lost. Call flush() more often.";
            $this->reporter->drop(1, ErrorCode::QueueFull, $full);
            return false;
        }
        if ($this->options->debug) {
            return $this->flush();
        }
        if ($this->queue->isReady($this->options->batchSize)) {
            $this->flush();
        }
        return true;
    }

    public function flush(): bool
    {
        return $this->queue->drain(function (array $calls): bool {
            $isOnItsWay = true;
            foreach (Batch::pack($calls, $this->options->batchSize) as $batch) {
                $isOnItsWay = $this->attempt($batch) && $isOnItsWay;
            }
            return $isOnItsWay;
        });
    }

    /** What a flush had in hand that `exit` or a fatal error cut short waits again; it may arrive twice, with the same ids. */
    public function resume(): void
    {
        $this->queue->takeBack();
    }

    private function attempt(Batch $batch): bool
    {
        try {
            return $this->dispatch($batch);
        } catch (\Throwable $error) {
            // The batch is nowhere else any more: whatever failed, it and those after it must not go with it.
            $this->reporter->report(ErrorCode::Unexpected, $error::class . ': ' . $error->getMessage());
            $this->spool->keep($batch, 'sending failed unexpectedly');
            return false;
        }
    }
}

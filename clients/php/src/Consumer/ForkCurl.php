<?php

/** Hands each batch to a process of its own, and leaves: the page waits for nothing but the start of that process. */

declare(strict_types=1);

namespace Millrace\Consumer;

use Millrace\Batch;
use Millrace\Http\CurlProcess;
use Millrace\Http\Reply;
use Millrace\Options;
use Millrace\Refusal;
use Millrace\Reporter;

final class ForkCurl extends QueueConsumer
{
    /** More than so many at once would take a machine down whose server is slow; further batches go to the spool. */
    private const PROCESSES_MAX = 50;

    private readonly CurlProcess $process;

    public function __construct(Options $options, Reporter $reporter)
    {
        parent::__construct($options, $reporter);
        $this->process = new CurlProcess($options, $this->spool);
    }

    public function name(): string
    {
        return 'fork_curl';
    }

    protected function dispatch(Batch $batch): bool
    {
        if ($this->options->debug) {
            $reply = $this->start(fn (): Reply => $this->process->ask($batch));
            return $reply !== null ? $this->verdict->on($batch, $reply) : $this->keep($batch);
        }
        if ($this->spool->processes() >= self::PROCESSES_MAX) {
            $this->spool->keep($batch, self::PROCESSES_MAX . ' processes are sending already');
            return false;
        }
        $isStarted = $this->start(fn (): bool => $this->process->leave($batch));
        if ($isStarted !== true) {
            return $this->keep($batch);
        }
        $this->spool->next(fn (Batch $kept): bool => $this->start(fn (): bool => $this->process->leave($kept)) === true);
        return true;
    }

    private function keep(Batch $batch): bool
    {
        $this->spool->keep($batch, 'no process could be started');
        return false;
    }

    /**
     * @template T
     * @param callable(): T $act
     * @return T|null null where it failed, which the host then knows
     */
    private function start(callable $act): mixed
    {
        try {
            return $act();
        } catch (Refusal $refusal) {
            $this->reporter->report($refusal->errorCode, $refusal->getMessage());
            return null;
        }
    }
}

<?php

/** Tells the host what went wrong, counts what was lost, and logs under debug. It never lets anything out. */

declare(strict_types=1);

namespace Millrace;

final class Reporter
{
    private int $dropped = 0;
    private bool $reporting = false;

    /** @param (callable(string, string): mixed)|null $handler */
    public function __construct(
        private readonly mixed $handler = null,
        public readonly bool $debug = false,
        private readonly ?object $logger = null,
    ) {
    }

    public function report(ErrorCode $code, string $message): void
    {
        // A handler that makes a call of its own, which fails as well, must not be called for ever.
        if ($this->reporting) {
            return;
        }
        $this->reporting = true;
        // A page must not fall for its own logger or handler, nor one of them for the other.
        $this->attempt(fn () => $this->log('warning', $code->value . ': ' . $message));
        $handler = $this->handler;
        if (is_callable($handler)) {
            $this->attempt(static fn () => $handler($code->value, $message));
        }
        $this->reporting = false;
    }

    public function drop(int $calls, ErrorCode $code, string $message): void
    {
        $this->dropped += $calls;
        $this->report($code, $message);
    }

    public function dropped(): int
    {
        return $this->dropped;
    }

    public function debug(string $message): void
    {
        if ($this->debug) {
            $this->attempt(fn () => $this->log('debug', $message));
        }
    }

    /** @param callable(): mixed $act */
    private function attempt(callable $act): void
    {
        try {
            $act();
        } catch (\Throwable) {
            // There is nobody left to tell.
        }
    }

    private function log(string $level, string $message): void
    {
        $log = $this->logger === null ? null : [$this->logger, $level];
        if (is_callable($log)) {
            $log('[millrace] ' . $message);
        } elseif ($this->debug) {
            error_log('[millrace] ' . $message);
        }
    }
}

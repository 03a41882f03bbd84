<?php

/**
 * One client of one source. A process that serves many requests, or sends for many sources, has as many of these as
 * it needs. Once it is made it throws nothing: what goes wrong goes to `error_handler`.
 */

declare(strict_types=1);

namespace Millrace;

use Millrace\Consumer\Consumer;
use Millrace\Consumer\File;
use Millrace\Consumer\ForkCurl;
use Millrace\Consumer\LibCurl;
use Millrace\Consumer\QueueConsumer;
use Millrace\Consumer\Socket;

final class Analytics
{
    private readonly Consumer $consumer;
    private readonly Reporter $reporter;
    private readonly Identity $identity;
    private readonly CallBuilder $builder;
    /** Which one made the latest call. */
    private int $process = 0;
    private bool $isWatched = false;

    /**
     * @param array<string, mixed> $options
     * @throws OptionError
     */
    public function __construct(#[\SensitiveParameter] string $writeKey, array $options = [])
    {
        $reader = new OptionReader($options);
        $read = $reader->options($writeKey);
        $this->reporter = new Reporter($read->errorHandler, $read->debug, $read->logger);
        $this->consumer = self::consumer($read, $this->reporter);
        $this->identity = new Identity();
        $this->builder = new CallBuilder($this->consumer->name(), $this->identity);
        foreach ($reader->unknown as $name) {
            $this->reporter->report(ErrorCode::UnknownOption, "There is no option '$name': it is ignored.");
        }
    }

    /** @param array<string, mixed> $call userId or anonymousId, traits */
    public function identify(mixed $call = null): bool
    {
        return $this->record('identify', $call);
    }

    /** @param array<string, mixed> $call event, properties */
    public function track(mixed $call = null): bool
    {
        return $this->record('track', $call);
    }

    /** @param array<string, mixed>|string $call name, category, properties; a string is the name */
    public function page(mixed $call = []): bool
    {
        return $this->record('page', $call);
    }

    /** @param array<string, mixed>|string $call name, category, properties; a string is the name */
    public function screen(mixed $call = []): bool
    {
        return $this->record('screen', $call);
    }

    /** @param array<string, mixed> $call groupId, traits */
    public function group(mixed $call = null): bool
    {
        return $this->record('group', $call);
    }

    /** @param array<string, mixed> $call userId, previousId */
    public function alias(mixed $call = null): bool
    {
        return $this->record('alias', $call);
    }

    /** @return bool false where something is not on its way: it is kept in the spool, or was reported as lost */
    public function flush(): bool
    {
        // A forked child that made no call has nothing but a copy of what its parent will send.
        if ($this->process !== getmypid()) {
            return true;
        }
        try {
            return $this->consumer->flush();
        } catch (\Throwable $error) {
            $this->unexpected($error);
            return false;
        }
    }

    /** Forgets who was identified: between two requests of one long-running process. */
    public function reset(): void
    {
        $this->identity->forget();
    }

    /** How many calls were refused or lost since this client was made, each reported to `error_handler`. */
    public function dropped(): int
    {
        return $this->reporter->dropped();
    }

    /** @internal Flushes when the page has ended, maybe in the middle of a flush. */
    public function end(): void
    {
        if ($this->consumer instanceof QueueConsumer) {
            $this->consumer->resume();
        }
        $this->flush();
    }

    public function __destruct()
    {
        if ($this->isWatched) {
            $this->end();
        }
    }

    private static function consumer(Options $options, Reporter $reporter): Consumer
    {
        if ($options->consumer instanceof Consumer) {
            return $options->consumer;
        }
        return match ($options->consumer) {
            'fork_curl' => new ForkCurl($options, $reporter),
            'socket' => new Socket($options, $reporter),
            'file' => new File($options, $reporter),
            default => new LibCurl($options, $reporter),
        };
    }

    private function record(string $type, mixed $call): bool
    {
        try {
            $json = $this->builder->build($type, $call);
            $this->reporter->debug("$type $json");
            $this->process = (int) getmypid();
            if (!$this->isWatched) {
                $this->isWatched = true;
                Shutdown::watch($this);
            }
            return $this->consumer->take($json);
        } catch (Refusal $refusal) {
            $this->reporter->drop(1, $refusal->errorCode, $refusal->getMessage());
        } catch (\Throwable $error) {
            $this->unexpected($error);
        }
        return false;
    }

    private function unexpected(\Throwable $error): void
    {
        $where = basename($error->getFile()) . ':' . $error->getLine();
        $this->reporter->drop(1, ErrorCode::Unexpected, $error::class . " at $where: {$error->getMessage()}");
    }
}

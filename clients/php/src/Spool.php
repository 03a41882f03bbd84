<?php

/**
 * Keeps what could not be sent, on disk, one call per line, until it can be.
 *
 * New lines go to `<path>`. Sending them begins with a rename to `<path>.<random>.<offset>.part`, where the offset
 * tells how far into it the server has accepted: moving on is a rename too, so a crash at any point loses nothing,
 * and sends at most one batch again, with the same message ids. A part is locked while somebody sends it.
 * `<path>.<random>.sending` are batches that a process of its own is sending; left alone for long, they become parts.
 */

declare(strict_types=1);

namespace Millrace;

use Millrace\Http\Sender;

final class Spool
{
    private const ABANDONED_AFTER_SECONDS = 600;

    private ?LineFile $file = null;

    public function __construct(
        private readonly Options $options,
        private readonly Reporter $reporter,
    ) {
    }

    public static function isOn(Options $options): bool
    {
        return $options->spool !== false;
    }

    public function path(): string
    {
        return is_string($this->options->spool)
            ? $this->options->spool
            : PrivateFolder::path() . '/' . $this->options->endpoint->fingerprint() . '.ndjson';
    }

    /**
     * Keeps a batch, or reports why it is lost.
     *
     * @return string the reason, and where the calls are now
     */
    public function keep(Batch $batch, string $reason): string
    {
        try {
            $this->append($batch);
            $kept = "$reason; kept in {$this->path()}: {$batch->count()} calls";
            $this->reporter->debug($kept);
            return $kept;
        } catch (Refusal $refusal) {
            $lost = "{$batch->count()} calls are lost: $reason; and they could not be kept: {$refusal->getMessage()}";
            $this->reporter->drop($batch->count(), ErrorCode::CallsDropped, $lost);
            return $reason;
        }
    }

    /** @throws Refusal */
    private function append(Batch $batch): void
    {
        if (!self::isOn($this->options)) {
            throw new Refusal(ErrorCode::FileFailed, 'the option spool is off');
        }
        $this->prepare();
        $file = $this->file ?? new LineFile($this->path(), 0o600, $this->options->spoolMaxBytes);
        $this->file = $file;
        $lines = $batch->lines();
        if ($this->bytes() + strlen($lines) > $this->options->spoolMaxBytes) {
            throw new Refusal(ErrorCode::FileFull, "the spool has reached {$this->options->spoolMaxBytes} bytes");
        }
        $file->append($lines);
    }

    /** @throws Refusal where the folder for what nobody named cannot be had */
    public function prepare(): void
    {
        if (!is_string($this->options->spool)) {
            PrivateFolder::make();
        }
    }

    /** Sends the next kept batch, where there is one: a page pays for one request at most. */
    public function sendNext(Sender $sender): void
    {
        $this->next(function (Batch $batch) use ($sender): bool {
            $reply = $sender->send($batch);
            if ($reply->outcome() === Outcome::Refused) {
                $lost = "the server refused {$batch->count()} kept calls with status {$reply->status}";
                $this->reporter->drop($batch->count(), ErrorCode::CallsDropped, $lost);
            }
            return !$reply->outcome()->keeps();
        });
    }

    /**
     * Gives the next kept batch to $settle, and moves past it if that returns true.
     *
     * @param callable(Batch): bool $settle
     */
    public function next(callable $settle): void
    {
        if (!self::isOn($this->options)) {
            return;
        }
        $part = Quietly::run(fn (): ?SpoolPart => $this->claim());
        if ($part === null) {
            return;
        }
        try {
            $batch = $part->read($this->options->batchSize);
            if ($batch === null || $settle($batch)) {
                $part->advance();
            }
        } finally {
            $part->release();
        }
    }

    /** A name beside the spool that nobody has: files under it can be renamed into it. */
    public function name(string $suffix): string
    {
        return $this->path() . '.' . bin2hex(random_bytes(8)) . '.' . $suffix;
    }

    /** @return list<string> */
    public function files(string $suffix): array
    {
        // The path may have characters that mean something to glob.
        $escaped = (string) preg_replace('/[*?[\]\\\\{}]/', '\\\\$0', $this->path());
        return glob($escaped . '.*.' . $suffix) ?: [];
    }

    /** How many processes of their own are sending a batch: each has a body, where the spool is off too. */
    public function processes(): int
    {
        return Quietly::run(function (): int {
            $this->adopt();
            return count($this->files('body'));
        });
    }

    private function claim(): ?SpoolPart
    {
        $this->adopt();
        foreach ($this->files('part') as $path) {
            $part = SpoolPart::claim($path, false);
            if ($part !== null) {
                return $part;
            }
        }
        clearstatcache(true, $this->path());
        if (!is_file($this->path()) || is_link($this->path())) {
            return null;
        }
        $path = $this->name('0.part');
        return rename($this->path(), $path) ? SpoolPart::claim($path, true) : null;
    }

    /** A process that was to send a batch and was killed leaves it behind. */
    private function adopt(): void
    {
        $before = time() - self::ABANDONED_AFTER_SECONDS;
        foreach ($this->files('sending') as $path) {
            if ((int) filemtime($path) < $before) {
                rename($path, $this->name('0.part'));
            }
        }
        foreach ($this->files('body') as $path) {
            if ((int) filemtime($path) < $before) {
                unlink($path);
            }
        }
    }

    private function bytes(): int
    {
        return Quietly::run(fn (): int => (int) array_sum(array_map(
            static fn (string $path): int => (int) filesize($path),
            [...$this->files('part'), ...$this->files('sending'), ...(is_file($this->path()) ? [$this->path()] : [])],
        )));
    }
}

<?php

/**
 * A file of calls, one JSON object per line, that many workers append to at once.
 *
 * Whoever takes the file away renames it, and then locks it exclusively once: after that no writer is inside any
 * more, since each looks, with the lock in hand, whether the file it holds still is the one of that name.
 */

declare(strict_types=1);

namespace Millrace;

final class LineFile
{
    private const REOPENINGS_MAX = 100;
    private const LOCKINGS_MAX = 10;

    /** @var resource|null */
    private $handle = null;
    private int $process = 0;

    public function __construct(
        public readonly string $path,
        private readonly int $mode,
        private readonly int $bytesMax,
    ) {
    }

    /**
     * All lines or none, in one write under one lock.
     *
     * @param string $lines each with its line break
     * @throws Refusal
     */
    public function append(string $lines): void
    {
        $warning = '';
        $refusal = Quietly::run(fn (): ?Refusal => $this->attempt($lines), $warning);
        if ($refusal !== null) {
            throw new Refusal($refusal->errorCode, $refusal->getMessage() . ($warning === '' ? '' : " ($warning)"));
        }
    }

    private function attempt(string $lines): ?Refusal
    {
        // A forked worker that wrote through its parent's handle would share the parent's lock as well.
        if ($this->process !== getmypid()) {
            $this->close();
            $this->process = (int) getmypid();
        }
        for ($opened = 0; $opened < self::REOPENINGS_MAX; $opened++) {
            $handle = $this->handle ?? $this->open();
            if ($handle === null || !self::lock($handle)) {
                $this->close();
                return new Refusal(ErrorCode::FileFailed, "{$this->path} cannot be opened and locked for writing.");
            }
            $this->handle = $handle;
            $now = fstat($handle);
            if ($now !== false && $this->isCurrent($now)) {
                $refusal = $this->write($handle, $lines, $now['size']);
                flock($handle, LOCK_UN);
                return $refusal;
            }
            $this->close();
        }
        return new Refusal(ErrorCode::FileFailed, "{$this->path} is renamed faster than it can be written.");
    }

    /** @return resource|null */
    private function open()
    {
        // Others must not read it between its making and a chmod, so it is made with no right for them.
        $mask = is_file($this->path) ? null : umask(0o777 & ~$this->mode);
        $handle = fopen($this->path, 'abe');
        if ($mask !== null) {
            umask($mask);
        }
        return $handle === false ? null : $handle;
    }

    /**
     * A signal that the host handles may end the wait for another writer, which is no reason to lose a call.
     *
     * @param resource $handle
     */
    private static function lock($handle): bool
    {
        for ($tried = 0; $tried < self::LOCKINGS_MAX; $tried++) {
            if (flock($handle, LOCK_EX)) {
                return true;
            }
        }
        return false;
    }

    /** @param array<int|string, int> $held */
    private function isCurrent(array $held): bool
    {
        clearstatcache(true, $this->path);
        $named = is_file($this->path) ? stat($this->path) : false;
        return $named !== false && $named['ino'] === $held['ino'] && $named['dev'] === $held['dev'];
    }

    /** @param resource $handle */
    private function write($handle, string $lines, int $size): ?Refusal
    {
        if ($size + strlen($lines) > $this->bytesMax) {
            return new Refusal(
                ErrorCode::FileFull,
                "{$this->path} has reached {$this->bytesMax} bytes. Does send.php run, and can it reach the server?",
            );
        }
        $written = fwrite($handle, $lines);
        if ($written === strlen($lines) && fflush($handle)) {
            return null;
        }
        // A full disk took a part of it: half a line would spoil the next one.
        ftruncate($handle, $size);
        return new Refusal(ErrorCode::FileFailed, "{$this->path} cannot be written.");
    }

    private function close(): void
    {
        if ($this->handle !== null) {
            fclose($this->handle);
        }
        $this->handle = null;
    }
}

<?php

/** The file of lines that were not accepted, each with its reason. Only the run that holds the lock writes it. */

declare(strict_types=1);

namespace Millrace\Send;

final class Rejects
{
    public int $count = 0;
    /** @var resource|null opened with the first reject: most logs have none */
    private $file = null;

    public function __construct(
        public readonly string $path,
    ) {
    }

    /** Takes back what was written after the position a crashed run had saved: it will be judged again. */
    public function truncateTo(int $bytes, int $inode): void
    {
        clearstatcache(true, $this->path);
        // Another inode means that someone took the file away to look at it; none, that there was no file yet.
        $isTheSame = is_file($this->path) && ($inode === 0 || $inode === fileinode($this->path));
        if (!$isTheSame || (int) filesize($this->path) <= $bytes) {
            return;
        }
        $this->open();
        if (!ftruncate($this->handle(), $bytes)) {
            throw FileTrouble::with("{$this->path} cannot be shortened");
        }
    }

    public function add(Reject $reject, string $log): void
    {
        $this->open();
        $text = $reject->toJson($log);
        if (@fwrite($this->handle(), $text) !== strlen($text)) {
            throw FileTrouble::with("{$this->path} cannot be written");
        }
        $this->count += $reject->line->endsLine ? 1 : 0;
    }

    /** @return array{bytes: int, inode: int} what a later run can take this file back to */
    public function mark(): array
    {
        if ($this->file === null) {
            clearstatcache(true, $this->path);

            return is_file($this->path)
                ? ['bytes' => (int) filesize($this->path), 'inode' => (int) fileinode($this->path)]
                : ['bytes' => 0, 'inode' => 0];
        }
        // The log may be removed on the strength of what stands here.
        if (!fflush($this->file) || !fsync($this->file)) {
            throw FileTrouble::with("{$this->path} cannot be written");
        }
        $stat = fstat($this->file);

        return ['bytes' => $stat['size'] ?? 0, 'inode' => $stat['ino'] ?? 0];
    }

    private function open(): void
    {
        if ($this->file !== null) {
            return;
        }
        $before = umask(0o077);
        $file = @fopen($this->path, 'a');
        umask($before);
        if ($file === false) {
            throw FileTrouble::with("{$this->path} cannot be opened");
        }
        $this->file = $file;
    }

    /** @return resource */
    private function handle()
    {
        return $this->file ?? throw new \LogicException('the rejects file is not open');
    }
}

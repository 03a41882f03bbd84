<?php

/** One run at a time for each log. The system takes the lock back from a run that was killed. */

declare(strict_types=1);

namespace Millrace\Send;

final class RunLock
{
    /** @param resource $file held open as long as the run lasts */
    private function __construct(
        private $file,
    ) {
    }

    /** `null` while another run holds it. */
    public static function take(string $log): ?self
    {
        // The file is never removed: a run that waits for a removed file's lock would lock nothing.
        $path = "$log.lock";
        $before = umask(0o077);
        $file = @fopen($path, 'c');
        umask($before);
        if ($file === false) {
            throw FileTrouble::with("$path cannot be opened");
        }

        return flock($file, LOCK_EX | LOCK_NB) ? new self($file) : null;
    }

    public function release(): void
    {
        flock($this->file, LOCK_UN);
        fclose($this->file);
    }
}

<?php

/** One part of the spool while it is being sent: locked, and read from where its name says. */

declare(strict_types=1);

namespace Millrace;

final class SpoolPart
{
    private int $end;

    /** @param resource $handle */
    private function __construct(private string $path, private $handle, private readonly int $offset)
    {
        $this->end = $offset;
    }

    /** @param bool $waits for a writer that is still inside, which is right for a part just renamed */
    public static function claim(string $path, bool $waits): ?self
    {
        if (preg_match('/\.(\d{1,15})\.part$/', $path, $found) !== 1) {
            return null;
        }
        // `e`: a process started meanwhile would otherwise inherit the handle, and with it the lock.
        $handle = fopen($path, 'rbe');
        if ($handle === false) {
            return null;
        }
        // Another may have sent, moved or removed it between our look at the folder and the lock.
        $held = flock($handle, $waits ? LOCK_EX : LOCK_EX | LOCK_NB) ? fstat($handle) : false;
        clearstatcache(true, $path);
        $named = is_file($path) ? stat($path) : false;
        if ($held === false || $named === false || $held['ino'] !== $named['ino']) {
            fclose($handle);
            return null;
        }
        return new self($path, $handle, (int) $found[1]);
    }

    /** The next calls; null where no whole call is left to read. */
    public function read(int $callsMax): ?Batch
    {
        $calls = [];
        $bytes = Batch::envelopeBytes();
        fseek($this->handle, $this->offset);
        while (count($calls) < $callsMax) {
            $line = fgets($this->handle);
            $isCall = $line !== false && strlen($line) <= Batch::CALL_BYTES_MAX;
            if ($line === false || ($isCall && $bytes + strlen($line) + 1 > Batch::BYTES_MAX)) {
                break;
            }
            $this->end += strlen($line);
            $call = trim($line);
            if ($isCall && $call !== '' && is_array(json_decode($call, true))) {
                $calls[] = $call;
                $bytes += strlen($line) + 1;
            }
        }
        return $calls === [] ? null : new Batch($calls);
    }

    /** Everything read is settled. */
    public function advance(): void
    {
        Quietly::run(function (): void {
            $size = fstat($this->handle)['size'] ?? 0;
            if ($this->end >= $size || $this->end === $this->offset) {
                unlink($this->path);
                return;
            }
            $next = (string) preg_replace('/\.\d+\.part$/', ".{$this->end}.part", $this->path);
            if (rename($this->path, $next)) {
                $this->path = $next;
            }
        });
    }

    public function release(): void
    {
        Quietly::run(fn (): bool => fclose($this->handle));
    }
}

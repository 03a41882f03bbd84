<?php

/** The log that is being written, and those taken away from the writers that are not all sent yet. */

declare(strict_types=1);

namespace Millrace\Send;

final class Logs
{
    private const SUFFIX = '.taken';

    public function __construct(
        /** What the writers append to. */
        public readonly string $live,
    ) {
    }

    /** @return list<string> what earlier runs left, oldest first */
    public function taken(): array
    {
        $names = @scandir(dirname($this->live));
        if ($names === false) {
            throw FileTrouble::with(dirname($this->live) . ' cannot be read');
        }
        $begin = basename($this->live) . '.';
        $ours = static fn (string $name): bool => str_starts_with($name, $begin)
            && preg_match('/^\d{8}T\d{12}-[0-9a-f]{8}\.taken$/', substr($name, strlen($begin))) === 1;
        $found = array_values(array_filter($names, $ours));
        sort($found);

        return array_map(fn (string $name): string => $this->beside($name), $found);
    }

    public function isLiveEmpty(): bool
    {
        clearstatcache(true, $this->live);

        return !is_file($this->live) || filesize($this->live) === 0;
    }

    /** Takes the live log away: writers that come later start a new one. */
    public function take(): string
    {
        if (is_link($this->live)) {
            throw new FileTrouble("{$this->live} is a symbolic link: name the file itself");
        }
        if (!is_readable($this->live)) {
            throw new FileTrouble("{$this->live} cannot be read: run as the user who writes it");
        }
        $name = basename($this->live) . '.' . gmdate('Ymd\THis') . substr(sprintf('%.6F', microtime(true)), -6);
        $taken = $this->beside($name . '-' . bin2hex(random_bytes(4)) . self::SUFFIX);
        if (!@rename($this->live, $taken)) {
            throw FileTrouble::with("{$this->live} cannot be renamed");
        }

        return $taken;
    }

    /**
     * Opens a taken log once nobody writes to it: writers hold its lock while they write, and look under the lock
     * whether the log still has its name.
     *
     * @return resource
     */
    public static function open(string $taken)
    {
        $log = @fopen($taken, 'r');
        if ($log === false) {
            throw FileTrouble::with("$taken cannot be opened");
        }
        if (!flock($log, LOCK_EX)) {
            throw FileTrouble::with("$taken cannot be locked");
        }
        flock($log, LOCK_UN);

        return $log;
    }

    public static function remove(string $taken): void
    {
        if (!@unlink($taken)) {
            throw FileTrouble::with("$taken cannot be removed");
        }
        // What is left of a run killed between these is removed with the next log.
        self::forget($taken);
    }

    /** Removes what is left beside logs that are gone. */
    public function clean(): void
    {
        foreach (@scandir(dirname($this->live)) ?: [] as $name) {
            $isOurs = str_starts_with($name, basename($this->live) . '.')
                && preg_match('/^(.*\.taken)\.position(\.next)?$/', $name, $match) === 1;
            if ($isOurs && !is_file($this->beside($match[1]))) {
                self::forget($this->beside($match[1]));
            }
        }
    }

    private static function forget(string $taken): void
    {
        foreach ([Journal::pathOf($taken), Journal::pathOf($taken) . '.next'] as $path) {
            if (is_file($path)) {
                @unlink($path);
            }
        }
    }

    private function beside(string $name): string
    {
        return dirname($this->live) . DIRECTORY_SEPARATOR . $name;
    }
}

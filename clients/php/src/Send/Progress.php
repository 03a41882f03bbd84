<?php

/** One line that renews itself while a person looks on; nothing where nobody does. */

declare(strict_types=1);

namespace Millrace\Send;

final class Progress
{
    private const EVERY_SECONDS = 0.2;

    private float $shownAt = 0.0;
    private bool $isShown = false;

    /** @param resource $terminal */
    public function __construct(
        private $terminal,
        private readonly bool $isOn,
    ) {
    }

    public function show(string $log, int $offset, int $bytes, int $calls): void
    {
        $now = microtime(true);
        if (!$this->isOn || $now - $this->shownAt < self::EVERY_SECONDS) {
            return;
        }
        $this->shownAt = $now;
        $this->isShown = true;
        $percent = $bytes === 0 ? 100 : intdiv(100 * $offset, $bytes);
        fwrite($this->terminal, sprintf("\r\e[K%s: %d %%, %s calls", basename($log), $percent, number_format($calls)));
    }

    /** Leaves the line clean for what is printed next. */
    public function clear(): void
    {
        if ($this->isShown) {
            fwrite($this->terminal, "\r\e[K");
            $this->isShown = false;
        }
    }
}

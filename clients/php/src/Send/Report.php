<?php

/** How a run ended, in the words it prints. */

declare(strict_types=1);

namespace Millrace\Send;

final class Report
{
    public function __construct(
        public readonly ExitCode $code,
        public readonly string $message = '',
        public readonly int $accepted = 0,
        public readonly int $rejected = 0,
        /** Nothing was sent: there is nothing to count. */
        private readonly bool $isSurvey = false,
    ) {
    }

    public function isTrouble(): bool
    {
        return $this->code !== ExitCode::Done;
    }

    public function line(): string
    {
        if ($this->isSurvey) {
            return $this->message;
        }
        $counts = self::counted($this->accepted, 'call') . ' accepted';
        $counts .= $this->rejected === 0 ? '' : ', ' . self::counted($this->rejected, 'line') . ' rejected';

        return $counts . ($this->message === '' ? '' : "; {$this->message}");
    }

    public static function counted(int $count, string $what): string
    {
        return number_format($count) . " $what" . ($count === 1 ? '' : 's');
    }
}

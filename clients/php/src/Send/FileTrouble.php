<?php

/** A file that could not be read, written, renamed or removed; its message says which, and why. */

declare(strict_types=1);

namespace Millrace\Send;

final class FileTrouble extends \RuntimeException
{
    public static function with(string $doing): self
    {
        $why = error_get_last()['message'] ?? 'no reason given';

        return new self("$doing: " . (string) preg_replace('/^\w+\(.*?\): /', '', $why));
    }
}

<?php

/**
 * Runs what may warn. A host may turn every warning into an exception, even one that `@` hides: here it becomes a
 * text for our own report and reaches nobody else.
 */

declare(strict_types=1);

namespace Millrace;

final class Quietly
{
    private function __construct()
    {
    }

    /**
     * @template T
     * @param callable(): T $act
     * @param string $warning set to the last warning, or to nothing
     * @return T
     */
    public static function run(callable $act, string &$warning = ''): mixed
    {
        $warning = '';
        set_error_handler(static function (int $level, string $message) use (&$warning): bool {
            $warning = $message;
            return true;
        });
        try {
            return $act();
        } finally {
            restore_error_handler();
        }
    }
}

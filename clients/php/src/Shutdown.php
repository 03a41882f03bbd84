<?php

/** Flushes what still waits when the script ends: normally, by `exit`, or by a fatal error, after which no destructor runs. */

declare(strict_types=1);

namespace Millrace;

final class Shutdown
{
    private const SPARE_BYTES = 8_388_608;

    /** @var \WeakMap<Analytics, true>|null */
    private static ?\WeakMap $watched = null;

    private function __construct()
    {
    }

    public static function watch(Analytics $analytics): void
    {
        if (self::$watched === null) {
            /** @var \WeakMap<Analytics, true> $watched */
            $watched = new \WeakMap();
            self::$watched = $watched;
            register_shutdown_function(static function (): void {
                self::flush();
                // The host's own shutdown functions may make calls: this one runs after them.
                register_shutdown_function(self::flush(...));
            });
        }
        self::$watched[$analytics] = true;
    }

    private static function flush(): void
    {
        $ended = error_get_last();
        if ($ended !== null && str_starts_with($ended['message'], 'Allowed memory size')) {
            self::makeRoom();
        }
        foreach (self::$watched ?? [] as $analytics => $isWatched) {
            $analytics->end();
        }
    }

    /** A page that died of its memory limit has none left to send its last calls with. */
    private static function makeRoom(): void
    {
        if (function_exists('ini_set')) {
            Quietly::run(static fn (): mixed => ini_set('memory_limit', (string) (memory_get_usage(true) + self::SPARE_BYTES)));
        }
    }
}

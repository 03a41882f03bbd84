<?php

/** The folder for spools nobody named: in the system's temporary folder, and this user's alone. */

declare(strict_types=1);

namespace Millrace;

final class PrivateFolder
{
    private static ?string $path = null;

    private function __construct()
    {
    }

    public static function path(): string
    {
        return self::$path ??= rtrim(sys_get_temp_dir(), '/') . '/millrace-' . self::user();
    }

    /** @throws Refusal where the folder is somebody else's: anybody may make folders there */
    public static function make(): void
    {
        $path = self::path();
        $isOurs = Quietly::run(static function () use ($path): bool {
            if (!is_dir($path)) {
                mkdir($path, 0o700);
            }
            clearstatcache(true, $path);
            return is_dir($path) && !is_link($path) && (fileperms($path) & 0o022) === 0
                && fileowner($path) === self::user();
        });
        if (!$isOurs) {
            throw new Refusal(ErrorCode::FileFailed, "$path is not a folder of this user alone: set the option spool");
        }
    }

    /** The user this process acts as; without ext-posix only a file it makes can tell. */
    private static function user(): int
    {
        if (function_exists('posix_geteuid')) {
            return posix_geteuid();
        }
        return Quietly::run(static function (): int {
            $made = tmpfile();
            return $made === false ? 0 : (int) (fstat($made)['uid'] ?? 0);
        });
    }
}

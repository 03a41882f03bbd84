<?php

/** The client most pages need: one for the whole request, reached by name from everywhere. */

declare(strict_types=1);

namespace Millrace;

final class Client
{
    private static ?Analytics $analytics = null;

    private function __construct()
    {
    }

    /**
     * @param array<string, mixed> $options
     * @throws OptionError
     */
    public static function init(#[\SensitiveParameter] string $writeKey, array $options = []): void
    {
        self::$analytics?->flush();
        self::$analytics = new Analytics($writeKey, $options);
    }

    /** @param array<string, mixed> $call userId or anonymousId, traits */
    public static function identify(mixed $call = null): bool
    {
        return self::analytics(__FUNCTION__)?->identify($call) ?? false;
    }

    /** @param array<string, mixed> $call event, properties */
    public static function track(mixed $call = null): bool
    {
        return self::analytics(__FUNCTION__)?->track($call) ?? false;
    }

    /** @param array<string, mixed>|string $call name, category, properties; a string is the name */
    public static function page(mixed $call = []): bool
    {
        return self::analytics(__FUNCTION__)?->page($call) ?? false;
    }

    /** @param array<string, mixed>|string $call name, category, properties; a string is the name */
    public static function screen(mixed $call = []): bool
    {
        return self::analytics(__FUNCTION__)?->screen($call) ?? false;
    }

    /** @param array<string, mixed> $call groupId, traits */
    public static function group(mixed $call = null): bool
    {
        return self::analytics(__FUNCTION__)?->group($call) ?? false;
    }

    /** @param array<string, mixed> $call userId, previousId */
    public static function alias(mixed $call = null): bool
    {
        return self::analytics(__FUNCTION__)?->alias($call) ?? false;
    }

    /** @return bool false where something is not on its way: it is kept in the spool, or was reported as lost */
    public static function flush(): bool
    {
        return self::analytics(__FUNCTION__)?->flush() ?? false;
    }

    /** Forgets who was identified: between two requests of one long-running process. */
    public static function reset(): void
    {
        self::$analytics?->reset();
    }

    /** How many calls were refused or lost since `init`, each reported to `error_handler`. */
    public static function dropped(): int
    {
        return self::$analytics?->dropped() ?? 0;
    }

    /** Without `init`, or after one that failed, there is nobody to tell but PHP's own log; the page goes on. */
    private static function analytics(string $method): ?Analytics
    {
        if (self::$analytics === null) {
            error_log("[millrace] Client::$method() before Client::init(): nothing is sent.");
        }
        return self::$analytics;
    }
}

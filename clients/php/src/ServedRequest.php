<?php

/** What PHP knows of the request it is serving, as properties of a page call. */

declare(strict_types=1);

namespace Millrace;

final class ServedRequest
{
    /** A visitor chooses the length of these: they must not push a call over its limit. */
    private const BYTES_MAX = 4_096;

    private function __construct()
    {
    }

    /**
     * @param array<mixed> $server as `$_SERVER`; nothing is known outside of a web request
     * @return array<string, string>
     */
    public static function properties(array $server): array
    {
        $target = self::text($server, 'REQUEST_URI');
        if ($target === '') {
            return [];
        }
        // An absolute form, as proxies are asked in, has scheme and host of its own.
        $target = (string) preg_replace('#^[a-z][a-z0-9+.-]*://[^/?\#]*#i', '', $target);
        $target = $target === '' || $target[0] !== '/' ? '/' . $target : $target;
        $host = self::host($server);
        $known = [
            'path' => explode('?', $target, 2)[0],
            'url' => $host === '' ? '' : self::scheme($server) . '://' . $host . $target,
            'referrer' => self::text($server, 'HTTP_REFERER'),
        ];
        return array_map(
            static fn (string $value): string => substr($value, 0, self::BYTES_MAX),
            array_filter($known, static fn (string $value): bool => $value !== ''),
        );
    }

    /** @param array<mixed> $server */
    private static function scheme(array $server): string
    {
        $https = strtolower(self::text($server, 'HTTPS'));
        // Behind a proxy that ends TLS only this header has what the visitor sees.
        $forwarded = strtolower(trim(explode(',', self::text($server, 'HTTP_X_FORWARDED_PROTO'))[0]));
        $secure = ($https !== '' && $https !== 'off') || $forwarded === 'https'
            || strtolower(self::text($server, 'REQUEST_SCHEME')) === 'https';
        return $secure ? 'https' : 'http';
    }

    /** @param array<mixed> $server */
    private static function host(array $server): string
    {
        $host = self::text($server, 'HTTP_HOST');
        if ($host !== '') {
            return $host;
        }
        $name = self::text($server, 'SERVER_NAME');
        $port = self::text($server, 'SERVER_PORT');
        return $name === '' || $port === '' || $port === '80' || $port === '443' ? $name : $name . ':' . $port;
    }

    /** @param array<mixed> $server */
    private static function text(array $server, string $key): string
    {
        $value = $server[$key] ?? null;
        return is_string($value) ? $value : '';
    }
}

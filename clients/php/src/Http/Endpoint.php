<?php

/** Where calls go, and as whom: the base address, taken apart once, and the write key. */

declare(strict_types=1);

namespace Millrace\Http;

use Millrace\OptionError;

final class Endpoint
{
    /** A Millrace on the same machine, as its quick start leaves it. */
    private const LOCAL = 'http://127.0.0.1:8080/v1';

    private const ALIASES = ['' => 'default', 'default' => 'default', 'oregon' => 'default', 'eu' => 'eu', 'dublin' => 'eu'];
    private const VARIABLES = ['default' => 'MILLRACE_BASE_URL', 'eu' => 'MILLRACE_BASE_URL_EU'];

    private function __construct(
        public readonly string $scheme,
        public readonly string $host,
        public readonly int $port,
        public readonly string $path,
        #[\SensitiveParameter]
        private readonly string $writeKey,
    ) {
    }

    /**
     * @param string|null $host a region (`default`, `eu`), or an address with or without scheme, port and path
     * @param bool $ssl which scheme, where the address has none of its own
     * @param array<string, string> $regions bases of the regions, before the environment's
     */
    public static function resolve(
        #[\SensitiveParameter]
        string $writeKey,
        ?string $host = null,
        bool $ssl = true,
        array $regions = [],
    ): self {
        if (preg_match('/^[\x21-\x39\x3b-\x7e]+$/', $writeKey) !== 1) {
            throw new OptionError('The write key must be printable characters without spaces and colons: copy it from the source\'s settings.');
        }
        $region = self::ALIASES[strtolower(trim($host ?? ''))] ?? null;
        $address = $region === null ? trim((string) $host) : self::base($region, $regions, $ssl);
        if (!str_contains($address, '://')) {
            $address = ($ssl ? 'https://' : 'http://') . $address;
        }
        return self::parse($address, $writeKey);
    }

    public function url(): string
    {
        return $this->scheme . '://' . $this->authority() . $this->path . '/batch';
    }

    /** Host and port as the Host header has them. */
    public function authority(): string
    {
        $usual = $this->port === ($this->scheme === 'https' ? 443 : 80);
        return $usual ? $this->host : $this->host . ':' . $this->port;
    }

    public function authorization(): string
    {
        return 'Basic ' . base64_encode($this->writeKey . ':');
    }

    /** Names this endpoint and key in file names, and tells neither. */
    public function fingerprint(): string
    {
        return substr(hash('sha256', $this->url() . "\n" . $this->writeKey), 0, 16);
    }

    /** @param array<string, string> $regions */
    private static function base(string $region, array $regions, bool $ssl): string
    {
        $variable = self::VARIABLES[$region];
        $base = $regions[$region] ?? getenv($variable);
        if (is_string($base) && trim($base) !== '') {
            // `host` named no scheme, so `ssl: false` still means http, whatever scheme the region's base has.
            return $ssl ? trim($base) : (string) preg_replace('#^https://#i', 'http://', trim($base));
        }
        if ($region === 'default') {
            return self::LOCAL;
        }
        throw new OptionError("No address is known for the region $region: set the option regions['$region'] or the variable $variable.");
    }

    private static function parse(string $address, #[\SensitiveParameter] string $writeKey): self
    {
        // The parts go into a request line and headers: nothing that could end a line may pass.
        $parts = preg_match('/^[\x21-\x7e]+$/', $address) === 1 ? parse_url($address) : false;
        // parse_url takes an IPv6 address without its brackets for a port.
        $isHost = preg_match('/^(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)$/i', $parts['host'] ?? '') === 1 && ($parts['port'] ?? 1) !== 0;
        if ($parts === false || !isset($parts['scheme'], $parts['host']) || !$isHost) {
            throw new OptionError("The option host is no address: '$address'. Give a region or an address such as https://events.example.com:8443.");
        }
        $scheme = strtolower($parts['scheme']);
        if ($scheme !== 'http' && $scheme !== 'https') {
            throw new OptionError("The option host must begin with http:// or https://, not $scheme://.");
        }
        if (isset($parts['user']) || isset($parts['pass']) || isset($parts['query']) || isset($parts['fragment'])) {
            throw new OptionError('The option host takes scheme, host, port and path only: no user, no query, no fragment.');
        }
        $path = rtrim($parts['path'] ?? '', '/');
        return new self(
            $scheme,
            $parts['host'],
            $parts['port'] ?? ($scheme === 'https' ? 443 : 80),
            str_ends_with($path, '/v1') ? $path : $path . '/v1',
            $writeKey,
        );
    }
}

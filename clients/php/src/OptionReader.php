<?php

/** Reads the options a host wrote, the reference library's names among them, and checks each. */

declare(strict_types=1);

namespace Millrace;

use Millrace\Consumer\Consumer;
use Millrace\Http\Endpoint;

final class OptionReader
{
    /** Names of the reference library for what is called otherwise here, and so for which unit. */
    private const ALIASES = [
        'compress_request' => 'gzip',
        'flush_at' => 'batch_size',
        'curl_timeout' => 'request_timeout',
        'curl_connecttimeout' => 'connect_timeout',
        'filepermissions' => 'file_mode',
    ];

    /** Options of the reference library that mean nothing here: nothing sleeps between batches, limits are the server's. */
    private const IGNORED = ['flush_interval', 'max_queue_size_bytes', 'max_item_size_bytes', 'tls', 'max_backoff_duration'];

    private const KNOWN = [
        'consumer', 'debug', 'ssl', 'error_handler', 'host', 'regions', 'max_queue_size', 'batch_size', 'timeout',
        'filename', 'gzip', 'ca_file', 'connect_timeout', 'request_timeout', 'retries', 'spool', 'spool_max_bytes',
        'file_mode', 'file_max_bytes', 'logger',
    ];

    private const NEEDS = [
        'lib_curl' => ['curl_init', 'the extension curl'],
        'fork_curl' => ['proc_open', 'the function proc_open, which disable_functions of php.ini may forbid'],
        'socket' => ['stream_socket_client', 'the function stream_socket_client'],
        'file' => ['flock', 'the function flock'],
    ];

    /** @var array<string, mixed> */
    private array $given = [];

    /** @var list<string> names that no option has */
    public readonly array $unknown;

    /** @param array<mixed> $options */
    public function __construct(array $options)
    {
        $unknown = [];
        foreach ($options as $name => $value) {
            $name = self::ALIASES[$name] ?? (string) $name;
            if (in_array($name, self::KNOWN, true)) {
                $this->given[$name] ??= $value;
            } elseif (!in_array($name, self::IGNORED, true)) {
                $unknown[] = $name;
            }
        }
        $this->unknown = $unknown;
    }

    public function options(#[\SensitiveParameter] string $writeKey): Options
    {
        $endpoint = Endpoint::resolve($writeKey, $this->text('host'), $this->flag('ssl', true), $this->regions());
        return new Options(
            endpoint: $endpoint,
            consumer: $this->consumer($endpoint),
            debug: $this->flag('debug', false),
            errorHandler: $this->handler(),
            maxQueueSize: $this->whole('max_queue_size', 10_000, 1, 1_000_000),
            batchSize: $this->whole('batch_size', 100, 1, Batch::CALLS_MAX),
            timeout: $this->seconds('timeout', 0.5),
            filename: $this->path('filename') ?? '/tmp/analytics.log',
            gzip: $this->gzip(),
            caFile: $this->caFile(),
            connectTimeout: $this->seconds('connect_timeout', 1.0),
            requestTimeout: $this->seconds('request_timeout', 3.0),
            retries: $this->whole('retries', 1, 0, 5),
            spool: ($this->given['spool'] ?? null) === false ? false : $this->path('spool'),
            spoolMaxBytes: $this->whole('spool_max_bytes', 67_108_864, 0, PHP_INT_MAX),
            fileMode: $this->whole('file_mode', 0o600, 0o200, 0o777),
            fileMaxBytes: $this->whole('file_max_bytes', 1_073_741_824, 1, PHP_INT_MAX),
            logger: $this->logger(),
        );
    }

    private function consumer(Endpoint $endpoint): string|Consumer
    {
        $consumer = $this->given['consumer'] ?? 'lib_curl';
        if ($consumer instanceof Consumer) {
            return $consumer;
        }
        if (!is_string($consumer) || !isset(self::NEEDS[$consumer])) {
            throw new OptionError('The option consumer is one of ' . implode(', ', array_keys(self::NEEDS)) . '.');
        }
        [$function, $what] = self::NEEDS[$consumer];
        if (!function_exists($function)) {
            throw new OptionError("The consumer $consumer needs $what. Provide it, or choose another consumer.");
        }
        if ($consumer === 'socket' && $endpoint->scheme === 'https' && !extension_loaded('openssl')) {
            throw new OptionError('The consumer socket needs the extension openssl for https.');
        }
        return $consumer;
    }

    private function handler(): ?callable
    {
        $handler = $this->given['error_handler'] ?? null;
        if ($handler !== null && !is_callable($handler)) {
            throw new OptionError('The option error_handler is a function of a code and a message.');
        }
        return $handler;
    }

    private function logger(): ?object
    {
        $logger = $this->given['logger'] ?? null;
        if ($logger !== null && !(is_object($logger) && method_exists($logger, 'warning') && method_exists($logger, 'debug'))) {
            throw new OptionError('The option logger is a PSR-3 logger.');
        }
        return $logger;
    }

    private function gzip(): bool
    {
        $gzip = $this->flag('gzip', false);
        if ($gzip && !function_exists('gzencode')) {
            throw new OptionError('The option gzip needs the extension zlib.');
        }
        return $gzip;
    }

    private function caFile(): ?string
    {
        $file = $this->path('ca_file');
        if ($file !== null && !Quietly::run(static fn (): bool => is_readable($file))) {
            throw new OptionError("The option ca_file names no file that can be read: '$file'.");
        }
        return $file;
    }

    /** @return array<string, string> */
    private function regions(): array
    {
        $regions = $this->given['regions'] ?? [];
        $bases = [];
        foreach (is_array($regions) ? $regions : [null] as $region => $base) {
            if (!is_string($base) || ($region !== 'default' && $region !== 'eu')) {
                throw new OptionError("The option regions maps 'default' and 'eu' to base addresses.");
            }
            $bases[$region] = $base;
        }
        return $bases;
    }

    private function text(string $name): ?string
    {
        $value = $this->given[$name] ?? null;
        if ($value !== null && (!is_string($value) || $value === '' || str_contains($value, "\0"))) {
            throw new OptionError("The option $name is a string, and not an empty one.");
        }
        return $value;
    }

    /** A page may change its folder, a web server does at the page's end, and a process of its own starts in another one. */
    private function path(string $name): ?string
    {
        $path = $this->text($name);
        if ($path === null || preg_match('#^(/|\\\\|[a-z]:|[a-z][a-z0-9.+-]*://)#i', $path) === 1) {
            return $path;
        }
        return Quietly::run(static fn (): string => (string) getcwd()) . '/' . $path;
    }

    private function flag(string $name, bool $default): bool
    {
        $value = $this->given[$name] ?? $default;
        return match ($value) {
            true, 1, '1' => true,
            false, 0, '0', '' => false,
            default => throw new OptionError("The option $name is true or false."),
        };
    }

    private function whole(string $name, int $default, int $least, int $most): int
    {
        $value = $this->given[$name] ?? $default;
        $whole = is_int($value) || is_string($value) ? filter_var($value, FILTER_VALIDATE_INT) : false;
        if ($whole === false || $whole < $least || $whole > $most) {
            throw new OptionError("The option $name is a whole number from $least to $most.");
        }
        return $whole;
    }

    private function seconds(string $name, float $default): float
    {
        $value = $this->given[$name] ?? $default;
        $seconds = is_numeric($value) ? (float) $value : 0.0;
        // No timeout at all is what makes a page hang: there is none, and NAN, which is neither less nor more, would be one.
        if (!($seconds >= 0.001 && $seconds <= 300)) {
            throw new OptionError("The option $name is a number of seconds over 0 and up to 300.");
        }
        return $seconds;
    }
}

<?php

/** The command line of send.php, read once; every mistake is told in one sentence. */

declare(strict_types=1);

namespace Millrace\Send;

final class Arguments
{
    public const USAGE = <<<'TEXT'
        usage: php send.php --secret WRITE_KEY --file LOG [options]

          --secret WRITE_KEY   the source's write key; MILLRACE_WRITE_KEY in the environment stands for it
          --file LOG           the log the file consumer writes, or a spool file
          --host HOST          default, eu, or an address like https://events.example.com:8443
          --batch-size N       calls in one request, 1 to 2500; 100 when absent
          --ca-file FILE       certificates of the authorities to trust, in PEM
          --dry-run            reads and checks, sends nothing and changes nothing
          --quiet              prints nothing but what went wrong
          --help

        TEXT;

    private const BATCH_SIZE_DEFAULT = 100;
    private const BATCH_SIZE_MAX = 2_500;
    private const WITH_VALUE = ['secret', 'file', 'host', 'batch-size', 'ca-file'];
    private const FLAGS = ['dry-run', 'quiet', 'help'];

    private function __construct(
        public readonly string $writeKey,
        public readonly string $file,
        public readonly string $host,
        public readonly int $batchSize,
        public readonly ?string $caFile,
        public readonly bool $dryRun,
        public readonly bool $quiet,
    ) {
    }

    /**
     * @param list<string> $argv without the script's own name
     * @return self|string|null what is wrong, or null where help was asked for
     */
    public static function parse(array $argv, ?string $writeKeyOfEnvironment = null): self|string|null
    {
        $given = self::given($argv);
        if (is_string($given)) {
            return $given;
        }
        if (isset($given['help'])) {
            return null;
        }
        $batchSize = $given['batch-size'] ?? (string) self::BATCH_SIZE_DEFAULT;
        $problem = self::problemOf($given, $writeKeyOfEnvironment, $batchSize);

        return $problem ?? new self(
            writeKey: $given['secret'] ?? $writeKeyOfEnvironment ?? '',
            file: $given['file'],
            host: $given['host'] ?? 'default',
            batchSize: (int) $batchSize,
            caFile: $given['ca-file'] ?? null,
            dryRun: isset($given['dry-run']),
            quiet: isset($given['quiet']),
        );
    }

    /**
     * @param list<string> $argv
     * @return array<string, string>|string
     */
    private static function given(array $argv): array|string
    {
        $given = [];
        for ($at = 0; $at < count($argv); $at++) {
            if (!str_starts_with($argv[$at], '--')) {
                return "\"{$argv[$at]}\" is no option";
            }
            [$name, $value] = explode('=', substr($argv[$at], 2), 2) + ['', null];
            if (in_array($name, self::FLAGS, true)) {
                if ($value !== null) {
                    return "--$name takes no value";
                }
                $given[$name] = '';
                continue;
            }
            if (!in_array($name, self::WITH_VALUE, true)) {
                return "--$name is no option";
            }
            if (isset($given[$name])) {
                return "--$name is given twice";
            }
            $value ??= $argv[++$at] ?? '';
            if ($value === '' || str_starts_with($value, '--')) {
                return "--$name needs a value";
            }
            $given[$name] = $value;
        }

        return $given;
    }

    /** @param array<string, string> $given */
    private static function problemOf(array $given, ?string $writeKey, string $batchSize): ?string
    {
        $size = filter_var($batchSize, FILTER_VALIDATE_INT, [
            'options' => ['min_range' => 1, 'max_range' => self::BATCH_SIZE_MAX],
        ]);

        return match (true) {
            ($given['secret'] ?? $writeKey ?? '') === '' => '--secret WRITE_KEY is missing',
            !isset($given['file']) => '--file LOG is missing',
            $size === false => '--batch-size must be a whole number from 1 to ' . self::BATCH_SIZE_MAX,
            isset($given['ca-file']) && !is_readable($given['ca-file']) => "{$given['ca-file']} cannot be read",
            default => null,
        };
    }
}

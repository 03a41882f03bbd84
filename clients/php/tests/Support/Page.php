<?php

/** Runs PHP code as a page of its own: a real process, every warning shown, and a handler that throws on any. */

declare(strict_types=1);

namespace Millrace\Tests\Support;

final class Page
{
    private const HEAD = <<<'PHP'
        error_reporting(E_ALL);
        ini_set('display_errors', '1');
        ini_set('error_log', '/dev/null');
        require $argv[1];
        $options = unserialize(base64_decode($argv[2]));
        PHP;

    /**
     * @param array<string, mixed> $options
     * @param list<string> $settings of php.ini, as `-d` takes them
     * @return array{int, string} exit status and everything it printed
     */
    public static function run(string $code, array $options = [], array $settings = []): array
    {
        $flags = [];
        foreach ($settings as $setting) {
            array_push($flags, '-d', $setting);
        }
        $command = [
            PHP_BINARY, ...$flags, '-r', self::HEAD . "\n" . $code, '--',
            __DIR__ . '/../../autoload.php', base64_encode(serialize($options)),
        ];
        $process = proc_open($command, [['file', '/dev/null', 'r'], ['pipe', 'w'], ['redirect', 1]], $pipes);
        if (!is_resource($process)) {
            throw new \RuntimeException('php cannot be started');
        }
        $said = (string) stream_get_contents($pipes[1]);
        fclose($pipes[1]);
        return [proc_close($process), $said];
    }
}

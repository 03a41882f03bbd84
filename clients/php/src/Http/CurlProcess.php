<?php

/**
 * A curl of its own for one batch. The process list shows the names of three files and nothing more: the write key
 * goes in on standard input, the body lies in a file of this user alone.
 */

declare(strict_types=1);

namespace Millrace\Http;

use Millrace\Batch;
use Millrace\ErrorCode;
use Millrace\Options;
use Millrace\Quietly;
use Millrace\Refusal;
use Millrace\Spool;
use Millrace\Version;

final class CurlProcess
{
    /**
     * `$1` body, `$2` the calls as lines, `$3` where they go if they are to be kept, both empty where there is no
     * spool; the statuses are Outcome's. What the page has open, such as its locks and its visitor's connection, is
     * closed as far as a plain shell can, or it would stay open for as long as the server takes.
     */
    private const LEAVE = <<<'SH'
        command -v curl >/dev/null || exit 127
        exec 3<&0 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-
        {
            code=$(curl -q --config - <&3) || code=000
            rm -f -- "$1"
            [ -n "$2" ] || exit 0
            case "$code" in
                2??|400|402|406|409|41?|42[0-8]|43?|44?|45?|46?|47?|48?|49?) rm -f -- "$2" ;;
                *) mv -f -- "$2" "$3" ;;
            esac
        } >/dev/null 2>&1 &
        SH;

    /** What a shell, or PHP in its place, ends with where the program is missing. */
    private const NOT_FOUND = 127;

    public function __construct(private readonly Options $options, private readonly Spool $spool)
    {
    }

    /**
     * Starts it and does not wait. The calls are on disk by then: they stay there until the server has them.
     *
     * @throws Refusal
     */
    public function leave(Batch $batch): bool
    {
        $body = $this->bodyFile($batch);
        $lines = $kept = '';
        try {
            if (Spool::isOn($this->options)) {
                $lines = $this->spool->name('sending');
                $kept = $this->spool->name('0.part');
                self::write($lines, $batch->lines());
            }
            $this->run(['/bin/sh', '-c', self::LEAVE, 'millrace', $body, $lines, $kept], $this->config($body, '/dev/null'));
            return true;
        } catch (Refusal $refusal) {
            self::remove($body, $lines);
            throw $refusal;
        }
    }

    /**
     * Starts it and waits for the answer.
     *
     * @throws Refusal
     */
    public function ask(Batch $batch): Reply
    {
        $body = $this->bodyFile($batch);
        try {
            $said = $this->run(['curl', '-q', '--config', '-'], $this->config($body, '-'));
        } finally {
            self::remove($body);
        }
        // The last line is the status, as asked for with write-out.
        $end = (int) strrpos($said, "\n");
        $status = (int) substr($said, $end + 1);
        return $status === 0
            ? Reply::unanswered("{$this->options->endpoint->url()}: curl had no answer within {$this->options->requestTimeout} s")
            : new Reply($status, substr($said, 0, $end));
    }

    private function bodyFile(Batch $batch): string
    {
        $this->spool->prepare();
        $path = $this->spool->name('body');
        $body = $batch->body();
        $packed = $this->options->gzip ? gzencode($body, 6) : false;
        self::write($path, $packed === false ? $body : $packed);
        return $path;
    }

    private function config(string $body, string $output): string
    {
        $settings = [
            'url' => $this->options->endpoint->url(),
            'proto' => '=http,https',
            'data-binary' => '@' . $body,
            'user-agent' => Version::LIBRARY . '/' . Version::NUMBER,
            'connect-timeout' => (string) $this->options->connectTimeout,
            'max-time' => (string) $this->options->requestTimeout,
            'output' => $output,
            'write-out' => ($output === '-' ? "\n" : '') . '%{http_code}',
        ];
        if ($this->options->caFile !== null) {
            $settings['cacert'] = $this->options->caFile;
        }
        // Without `globoff` braces in an address would be many addresses.
        $lines = ['silent', 'globoff'];
        foreach ($settings as $name => $value) {
            $lines[] = $name . ' = ' . self::quoted($value);
        }
        $headers = ['Authorization: ' . $this->options->endpoint->authorization(), 'Content-Type: application/json', 'Expect:'];
        foreach ($this->options->gzip ? [...$headers, 'Content-Encoding: gzip'] : $headers as $header) {
            $lines[] = 'header = ' . self::quoted($header);
        }
        return implode("\n", $lines) . "\n";
    }

    private static function quoted(string $value): string
    {
        return '"' . str_replace(['\\', '"', "\n"], ['\\\\', '\\"', '\\n'], $value) . '"';
    }

    /**
     * @param list<string> $command
     * @return string what it says before it ends; it ends at once where it leaves its work to a child
     */
    private function run(array $command, string $input): string
    {
        $warning = '';
        $said = Quietly::run(static function () use ($command, $input): ?string {
            $null = ['file', '/dev/null', 'w'];
            $pipes = [];
            $process = proc_open($command, [['pipe', 'r'], ['pipe', 'w'], $null], $pipes, '/');
            if (!is_resource($process) || !isset($pipes[0], $pipes[1])) {
                return null;
            }
            [$in, $out] = $pipes;
            fwrite($in, $input);
            fclose($in);
            $said = stream_get_contents($out);
            fclose($out);
            return proc_close($process) === self::NOT_FOUND ? null : (string) $said;
        }, $warning);
        return $said ?? throw new Refusal(
            ErrorCode::ProcessFailed,
            'curl could not be started: is it installed, and on the PATH?' . ($warning === '' ? '' : " ($warning)"),
        );
    }

    private static function write(string $path, string $content): void
    {
        $warning = '';
        $isWritten = Quietly::run(static function () use ($path, $content): bool {
            $mask = umask(0o077);
            $file = fopen($path, 'xbe');
            umask($mask);
            return $file !== false && fwrite($file, $content) === strlen($content) && fclose($file);
        }, $warning);
        if (!$isWritten) {
            self::remove($path);
            throw new Refusal(ErrorCode::FileFailed, "$path cannot be written ($warning)");
        }
    }

    private static function remove(string ...$paths): void
    {
        Quietly::run(static function () use ($paths): void {
            foreach ($paths as $path) {
                if ($path !== '' && is_file($path)) {
                    unlink($path);
                }
            }
        });
    }
}

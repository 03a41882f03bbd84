<?php

/** A folder and receivers that go when the test does, and what the error handler heard. */

declare(strict_types=1);

namespace Millrace\Tests\Support;

use Millrace\Analytics;
use PHPUnit\Framework\TestCase;

abstract class LibraryTestCase extends TestCase
{
    protected string $folder = '';

    /** @var list<array{string, string}> code and message */
    protected array $heard = [];

    /** @var list<Receiver> */
    private array $receivers = [];

    protected function setUp(): void
    {
        $this->folder = sys_get_temp_dir() . '/millrace-test-' . bin2hex(random_bytes(6));
        mkdir($this->folder, 0o700);
        $this->heard = [];
    }

    protected function tearDown(): void
    {
        foreach ($this->receivers as $receiver) {
            $receiver->stop();
        }
        $this->receivers = [];
        foreach (glob($this->folder . '/*') ?: [] as $file) {
            unlink($file);
        }
        rmdir($this->folder);
    }

    /** @param array<string, mixed> ...$plan */
    protected function receiver(array ...$plan): Receiver
    {
        return $this->keep(new Receiver($plan === [] ? [[]] : array_values($plan)));
    }

    protected function secureReceiver(string $certificate): Receiver
    {
        return $this->keep(new Receiver([[]], $certificate));
    }

    /** A port where nobody listens. */
    protected function deadUrl(): string
    {
        $listener = stream_socket_server('tcp://127.0.0.1:0');
        self::assertNotFalse($listener);
        $name = (string) stream_socket_get_name($listener, false);
        fclose($listener);
        return "http://$name";
    }

    /** @param array<string, mixed> $options */
    protected function analytics(array $options): Analytics
    {
        return new Analytics('wk_test', $options + [
            'spool' => $this->spool(),
            'error_handler' => function (string $code, string $message): void {
                $this->heard[] = [$code, $message];
            },
        ]);
    }

    protected function spool(): string
    {
        return $this->folder . '/spool.ndjson';
    }

    /** @return list<array<string, mixed>> calls in the spool and its parts */
    protected function spooled(): array
    {
        $calls = [];
        foreach (glob($this->spool() . '{,.*.part}', GLOB_BRACE) ?: [] as $file) {
            $calls = [...$calls, ...self::callsIn($file)];
        }
        return $calls;
    }

    /** @return list<array<string, mixed>> */
    protected static function callsIn(string $file): array
    {
        $lines = is_file($file) ? file($file, FILE_IGNORE_NEW_LINES) ?: [] : [];
        /** @var list<array<string, mixed>> */
        return array_map(static fn (string $line): mixed => json_decode($line, true, 512, JSON_THROW_ON_ERROR), $lines);
    }

    /** @return list<string> */
    protected function codes(): array
    {
        return array_column($this->heard, 0);
    }

    private function keep(Receiver $receiver): Receiver
    {
        $this->receivers[] = $receiver;
        return $receiver;
    }
}

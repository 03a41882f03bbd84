<?php

/** The real server that tests send to: started, asked what it got, and stopped. */

declare(strict_types=1);

namespace Millrace\Tests\Support;

final class Receiver
{
    /** @var resource */
    private $process;
    /** @var array<int, resource> */
    private array $pipes = [];
    private readonly string $record;
    public readonly int $port;

    /** @param list<array<string, mixed>> $plan */
    public function __construct(array $plan = [[]], private readonly ?string $certificate = null)
    {
        $this->record = (string) tempnam(sys_get_temp_dir(), 'received');
        $command = [PHP_BINARY, __DIR__ . '/server.php', $this->record, json_encode($plan, JSON_THROW_ON_ERROR), $certificate ?? ''];
        $process = proc_open($command, [['pipe', 'r'], ['pipe', 'w'], STDERR], $this->pipes);
        if (!is_resource($process)) {
            throw new \RuntimeException('the receiver cannot be started');
        }
        $this->process = $process;
        $this->port = (int) fgets($this->pipes[1]);
        if ($this->port === 0) {
            throw new \RuntimeException('the receiver did not start');
        }
    }

    public function url(): string
    {
        return ($this->certificate === null ? 'http' : 'https') . "://127.0.0.1:{$this->port}";
    }

    /** @return list<array{connection: int, method: string, path: string, headers: array<string, string>, bytes: int, body: string}> */
    public function requests(): array
    {
        $lines = file($this->record, FILE_IGNORE_NEW_LINES | FILE_SKIP_EMPTY_LINES) ?: [];
        /** @var list<array{connection: int, method: string, path: string, headers: array<string, string>, bytes: int, body: string}> */
        return array_map(static fn (string $line): mixed => json_decode($line, true, 512, JSON_THROW_ON_ERROR), $lines);
    }

    /** @return list<array<string, mixed>> the calls of every batch, in order */
    public function calls(): array
    {
        $calls = [];
        foreach ($this->requests() as $request) {
            $body = json_decode($request['body'], true, 512, JSON_THROW_ON_ERROR);
            $calls = [...$calls, ...$body['batch']];
        }
        return $calls;
    }

    /** @return list<array<string, mixed>> */
    public function waitForCalls(int $count, float $seconds = 30.0): array
    {
        Until::true(fn (): bool => $this->lines() > 0 && count($this->calls()) >= $count, "$count calls", $seconds);
        return $this->calls();
    }

    /** The same count without reading the calls. */
    public function callCount(): int
    {
        return substr_count((string) file_get_contents($this->record), 'messageId');
    }

    public function waitForRequests(int $count, float $seconds = 30.0): void
    {
        Until::true(fn (): bool => $this->lines() >= $count, "$count requests", $seconds);
    }

    public function stop(): void
    {
        foreach ($this->pipes as $pipe) {
            fclose($pipe);
        }
        $this->pipes = [];
        proc_close($this->process);
        unlink($this->record);
    }

    private function lines(): int
    {
        return substr_count((string) file_get_contents($this->record), "\n");
    }
}

<?php

/** A page that makes the calls it is told on its input, and ends as it is told. */

declare(strict_types=1);

use Millrace\Client;

require __DIR__ . '/../../../clients/php/autoload.php';

$order = json_decode((string) stream_get_contents(STDIN), true, 512, JSON_THROW_ON_ERROR);
$_SERVER = ($order['server'] ?? []) + $_SERVER;
$hear = static function (string|int $code, string $message) use ($order): void {
    $line = json_encode(['code' => (string) $code, 'message' => $message], JSON_INVALID_UTF8_SUBSTITUTE);
    file_put_contents($order['errorsFile'], "$line\n", FILE_APPEND);
};
Client::init($order['writeKey'], $order['options'] + ['error_handler' => $hear]);
$startedAt = hrtime(true);
$results = [];
foreach ($order['calls'] as [$method, $given]) {
    $results[] = Client::$method($given);
}
$tell = static function () use (&$results, $startedAt): void {
    $figures = ['callsMs' => (hrtime(true) - $startedAt) / 1e6];
    echo "\n", json_encode(['results' => $results, 'figures' => $figures], JSON_THROW_ON_ERROR), "\n";
};
$end = $order['end'] ?? 'return';
if ($end === 'flush') {
    $results[] = Client::flush();
}
$tell();
match ($end) {
    'exit' => exit(0),
    'fatal' => (static function (): void {
        /** @phpstan-ignore-next-line a page with a bug in it */
        missing_function();
    })(),
    'throw' => throw new RuntimeException('the page failed'),
    'memory' => (static function (): void {
        ini_set('memory_limit', '32M');
        for ($held = [];;) {
            $held[] = str_repeat('x', 1_000);
        }
    })(),
    default => null,
};

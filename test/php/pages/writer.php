<?php

/** A worker that goes on calling until it is told to stop, and tells how often it did. */

declare(strict_types=1);

use Millrace\Client;

require __DIR__ . '/../../../clients/php/autoload.php';

const PAUSE_MICROSECONDS = 200_000;

$order = json_decode((string) stream_get_contents(STDIN), true, 512, JSON_THROW_ON_ERROR);
$hear = static function (string $code, string $message) use ($order): void {
    $line = json_encode(['code' => $code, 'message' => $message], JSON_INVALID_UTF8_SUBSTITUTE);
    file_put_contents($order['errorsFile'], "$line\n", FILE_APPEND);
};
Client::init($order['writeKey'], $order['options'] + ['error_handler' => $hear]);
for ($n = 0; $n < $order['callsMax'] && !file_exists($order['stopFile']); $n++) {
    $user = "{$order['userId']}-{$order['worker']}-$n";
    // Lines of many lengths: a torn one would show.
    $text = str_repeat('é', ($n * 97) % 900);
    Client::track(['userId' => $user, 'event' => 'Written', 'properties' => ['text' => $text]]);
    usleep(PAUSE_MICROSECONDS);
    clearstatcache();
}
echo "\n", json_encode(['results' => [], 'figures' => ['taken' => $n]], JSON_THROW_ON_ERROR), "\n";

<?php

/** A process that makes as many calls as it is told, and tells what memory they took. */

declare(strict_types=1);

use Millrace\Client;

require __DIR__ . '/../../../clients/php/autoload.php';

$order = json_decode((string) stream_get_contents(STDIN), true, 512, JSON_THROW_ON_ERROR);
$hear = static function (string $code, string $message) use ($order): void {
    $line = json_encode(['code' => $code, 'message' => $message], JSON_INVALID_UTF8_SUBSTITUTE);
    file_put_contents($order['errorsFile'], "$line\n", FILE_APPEND);
};
Client::init($order['writeKey'], $order['options'] + ['error_handler' => $hear]);
$taken = 0;
$peakBytesAtMark = 0;
for ($n = 0; $n < $order['count']; $n++) {
    if ($n === $order['mark']) {
        $peakBytesAtMark = memory_get_peak_usage();
    }
    $taken += Client::track(['userId' => "u$n", 'event' => 'Counted', 'properties' => ['n' => $n]]) ? 1 : 0;
}
Client::flush();
$figures = ['taken' => $taken, 'peakBytesAtMark' => $peakBytesAtMark, 'peakBytes' => memory_get_peak_usage()];
echo "\n", json_encode(['results' => [], 'figures' => $figures], JSON_THROW_ON_ERROR), "\n";

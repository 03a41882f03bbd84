<?php

/** Serves pages of a few calls each for some seconds, and tells what a call cost them: with a consumer, or json_encode alone. */

declare(strict_types=1);

use Millrace\Analytics;

require __DIR__ . '/../../clients/php/autoload.php';

$order = json_decode((string) stream_get_contents(STDIN), true, 512, JSON_THROW_ON_ERROR);
$call = [
    'userId' => '019123',
    'event' => 'Order Completed',
    'properties' => [
        'orderId' => '50314b8e9bcf000000000000',
        'total' => 27.5,
        'currency' => 'EUR',
        'products' => [['sku' => '45790-32', 'price' => 19, 'quantity' => 1], ['sku' => '46493-32', 'price' => 8.5]],
    ],
];
$errors = 0;
$options = ($order['options'] ?? []) + ['error_handler' => static function () use (&$errors): void {
    $errors++;
}];
[$calls, $pages, $spent] = [0, 0, 0];
$endsAt = hrtime(true) + (int) ($order['seconds'] * 1e9);
while (hrtime(true) < $endsAt) {
    $startedAt = hrtime(true);
    if ($order['consumer'] === null) {
        for ($n = 0; $n < $order['callsPerPage']; $n++) {
            // Not to be left out as a call whose outcome nobody uses.
            $calls += json_encode($call, JSON_THROW_ON_ERROR) === '' ? 0 : 1;
        }
    } else {
        // As a page that is served anew: nothing is left of the last one.
        $analytics = new Analytics($order['writeKey'], ['consumer' => $order['consumer']] + $options);
        for ($n = 0; $n < $order['callsPerPage']; $n++) {
            $calls += $analytics->track($call) ? 1 : 0;
        }
        $analytics->flush();
    }
    $spent += hrtime(true) - $startedAt;
    $pages++;
}
echo json_encode(['calls' => $calls, 'pages' => $pages, 'errors' => $errors, 'nanoseconds' => $spent], JSON_THROW_ON_ERROR);

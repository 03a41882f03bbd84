<?php

/** A page written for the reference library: only the file it requires is another. */

declare(strict_types=1);

require __DIR__ . '/../../../clients/php/shim.php';

use Segment\Segment as Imported;

$order = json_decode((string) stream_get_contents(STDIN), true, 512, JSON_THROW_ON_ERROR);
Segment::init($order['writeKey'], $order['options']);
Segment::track(['userId' => $order['userId'], 'event' => 'Old Name', 'timestamp' => time()]);
Imported::flush();
$client = new Segment\Client($order['writeKey'], $order['options']);
$client->track(['userId' => $order['userId'], 'event' => 'Old Instance']);
$client->flush();
echo "\n", json_encode(['results' => []]), "\n";

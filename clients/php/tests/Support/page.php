<?php

/** A page that PHP's own web server serves: tells what a page call makes of the request. */

declare(strict_types=1);

require __DIR__ . '/../../autoload.php';

Millrace\Client::init('wk', ['consumer' => 'file', 'filename' => (string) getenv('PAGE_LOG')]);
Millrace\Client::page('Pricing');
echo 'served';

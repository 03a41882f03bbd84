#!/usr/bin/env php
<?php

/**
 * Sends the log that the file consumer writes, and removes it once every line is settled.
 *
 *     * * * * * php send.php --quiet --secret WRITE_KEY --file /tmp/analytics.log
 *
 * Killed at any moment it loses nothing, and the next run goes on. `--help` has the options, docs/php.md the exit codes.
 */

declare(strict_types=1);

use Millrace\Http\CurlSender;
use Millrace\Http\Endpoint;
use Millrace\Http\Sender;
use Millrace\Http\SocketSender;
use Millrace\Send\Script;

require __DIR__ . '/autoload.php';

/** Nobody waits for a page here: a slow network gets more time than the library's consumers give it. */
$sender = static function (Endpoint $endpoint, ?string $caFile): Sender {
    [$connectSeconds, $requestSeconds] = [5.0, 15.0];

    return extension_loaded('curl')
        ? new CurlSender($endpoint, $connectSeconds, $requestSeconds, caFile: $caFile)
        : new SocketSender($endpoint, $connectSeconds + $requestSeconds, $requestSeconds, caFile: $caFile);
};
exit((new Script(STDOUT, STDERR, $sender))->run(array_values(array_slice($argv, 1)))->value);

<?php

/** Every option with its default, checked once. */

declare(strict_types=1);

namespace Millrace;

use Millrace\Consumer\Consumer;
use Millrace\Http\Endpoint;

final class Options
{
    /**
     * @param string|Consumer $consumer lib_curl, fork_curl, socket, file, or a consumer of one's own
     * @param (callable(string, string): mixed)|null $errorHandler code and message
     * @param float $timeout seconds a call may cost with the consumer socket
     * @param float $connectTimeout seconds until a connection of lib_curl or fork_curl stands
     * @param float $requestTimeout seconds until a request of lib_curl or fork_curl is answered
     * @param int $retries attempts after the first one, each at once: nothing sleeps in a page
     * @param string|false|null $spool file that keeps what could not be sent; null for one named after key and address
     * @param object|null $logger anything with PSR-3's `debug` and `warning`
     */
    public function __construct(
        public readonly Endpoint $endpoint,
        public readonly string|Consumer $consumer = 'lib_curl',
        public readonly bool $debug = false,
        public readonly mixed $errorHandler = null,
        public readonly int $maxQueueSize = 10_000,
        public readonly int $batchSize = 100,
        public readonly float $timeout = 0.5,
        public readonly string $filename = '/tmp/analytics.log',
        public readonly bool $gzip = false,
        public readonly ?string $caFile = null,
        public readonly float $connectTimeout = 1.0,
        public readonly float $requestTimeout = 3.0,
        public readonly int $retries = 1,
        public readonly string|false|null $spool = null,
        public readonly int $spoolMaxBytes = 67_108_864,
        public readonly int $fileMode = 0o600,
        public readonly int $fileMaxBytes = 1_073_741_824,
        public readonly ?object $logger = null,
    ) {
    }

}

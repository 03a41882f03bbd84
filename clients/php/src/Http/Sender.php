<?php

/** Posts a batch to the server. */

declare(strict_types=1);

namespace Millrace\Http;

use Millrace\Batch;

interface Sender
{
    /**
     * One attempt: never throws, never sleeps, never follows a redirect, and ends within the timeouts it was made
     * with. `sentAt` is the instant of this attempt. Retrying is the caller's affair.
     */
    public function send(Batch $batch): Reply;
}

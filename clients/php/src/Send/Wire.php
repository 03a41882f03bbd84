<?php

// What carries a batch to the collector and brings the answer back.

declare(strict_types=1);

namespace Millrace\Send;

interface Wire
{
    /** Never throws: what went wrong on the way is an answer too. */
    public function post(string $body, int $retry): Answer;
}

<?php

/** Takes calls that were checked and encoded, and gets them out of this process. */

declare(strict_types=1);

namespace Millrace\Consumer;

interface Consumer
{
    /** As it stands in `context.library.consumer`. */
    public function name(): string;

    /**
     * Takes one call: a JSON object without a line break, shorter than Batch::CALL_BYTES_MAX.
     *
     * @return bool whether it is safe: queued, written or sent
     */
    public function take(string $call): bool;

    /**
     * Gets out everything taken so far.
     *
     * @return bool false where something is not on its way: it is in the spool, or was reported as dropped
     */
    public function flush(): bool;
}

<?php

/** Appends each call to a log file, which `send.php` sends out of band. */

declare(strict_types=1);

namespace Millrace\Consumer;

use Millrace\LineFile;
use Millrace\Options;
use Millrace\Refusal;
use Millrace\Reporter;

final class File implements Consumer
{
    private readonly LineFile $file;

    public function __construct(Options $options, private readonly Reporter $reporter)
    {
        $this->file = new LineFile($options->filename, $options->fileMode, $options->fileMaxBytes);
    }

    public function name(): string
    {
        return 'file';
    }

    public function take(string $call): bool
    {
        try {
            $this->file->append($call . "\n");
            return true;
        } catch (Refusal $refusal) {
            $this->reporter->drop(1, $refusal->errorCode, "a call is lost: {$refusal->getMessage()}");
            return false;
        }
    }

    public function flush(): bool
    {
        return true;
    }
}

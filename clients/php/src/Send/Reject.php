<?php

/** A line that can never be accepted, and why. */

declare(strict_types=1);

namespace Millrace\Send;

final class Reject
{
    public function __construct(
        public readonly Line $line,
        /** One of ours, or the collector's. */
        public readonly string $code,
        public readonly string $message,
    ) {
    }

    /** One line of JSON; a line that is not UTF-8 is kept in base64, so that not a byte is lost. */
    public function toJson(string $log): string
    {
        $about = [
            'code' => $this->code,
            'message' => $this->message,
            'log' => $log,
            'offset' => $this->line->start,
        ] + ($this->line->piece > 0 ? ['piece' => $this->line->piece] : []);
        $flags = JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE;
        $isUtf8 = preg_match('//u', $this->line->text) === 1;
        $line = $isUtf8 ? ['line' => $this->line->text] : ['lineBase64' => base64_encode($this->line->text)];

        return json_encode($about + $line, $flags | JSON_THROW_ON_ERROR) . "\n";
    }
}

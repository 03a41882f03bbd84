<?php

/** A line that can be sent: the JSON text of one call, exactly as it was written, with a message id. */

declare(strict_types=1);

namespace Millrace\Send;

final class Call
{
    private const DEPTH_MAX = 512;

    private function __construct(
        public readonly Line $line,
        public readonly string $json,
    ) {
    }

    /**
     * A line without a message id gets one that is the same each time it is read, so that sending it again is no second call.
     *
     * @param string $log names the log among all others
     */
    public static function read(Line $line, string $log, int $bytesMax): self|Reject
    {
        if ($line->piece > 0 || strlen($line->text) > $bytesMax) {
            return new Reject($line, 'line_too_long', "no request holds more than $bytesMax bytes");
        }
        try {
            $call = json_decode($line->text, false, self::DEPTH_MAX, JSON_THROW_ON_ERROR);
        } catch (\JsonException $exception) {
            return new Reject($line, 'invalid_json', $exception->getMessage());
        }
        if (!$call instanceof \stdClass) {
            return new Reject($line, 'not_an_object', 'the line is JSON, but no object');
        }
        $messageId = $call->messageId ?? '';

        return new self($line, $messageId === '' ? self::named($line, $log, $call) : $line->text);
    }

    private static function named(Line $line, string $log, \stdClass $call): string
    {
        if (property_exists($call, 'messageId')) {
            // Two members of one name: which of them counts is nobody's to guess.
            unset($call->messageId);
            $text = json_encode($call, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_PRESERVE_ZERO_FRACTION);
        } else {
            $text = ltrim($line->text);
        }
        $id = 'log-' . substr(hash('sha256', "$log\0{$line->start}\0{$line->text}"), 0, 40);
        $rest = ltrim(substr($text, 1));

        return "{\"messageId\":\"$id\"" . ($rest[0] === '}' ? '' : ',') . $rest;
    }
}

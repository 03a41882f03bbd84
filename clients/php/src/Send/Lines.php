<?php

/** Streams a log line by line: what is held is never more than one line, and of a giant one a piece. */

declare(strict_types=1);

namespace Millrace\Send;

final class Lines
{
    /** Twice what a request may have: longer lines can never be sent. */
    public const BYTES_HELD_MAX = 1_048_576;

    /**
     * @param resource $log
     * @return \Generator<int, Line>
     */
    public static function from($log, int $offset, int $bytesHeldMax = self::BYTES_HELD_MAX): \Generator
    {
        if (fseek($log, $offset) !== 0) {
            throw new FileTrouble("the log has no position $offset");
        }
        $piece = 0;
        while (($text = fgets($log, $bytesHeldMax + 1)) !== false) {
            $start = $offset;
            $offset += strlen($text);
            $endsLine = str_ends_with($text, "\n") || strlen($text) < $bytesHeldMax || self::isAtEnd($log);
            $piece = $piece > 0 || !$endsLine ? $piece + 1 : 0;
            yield new Line($start, $offset, rtrim($text, "\r\n"), $piece, $endsLine);
            $piece = $endsLine ? 0 : $piece;
        }
    }

    /** @param resource $log */
    private static function isAtEnd($log): bool
    {
        $next = fgetc($log);
        if ($next !== false) {
            fseek($log, -1, SEEK_CUR);
        }

        return $next === false;
    }
}

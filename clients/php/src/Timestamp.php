<?php

/** Instants as the wire has them: ISO 8601, UTC, milliseconds. */

declare(strict_types=1);

namespace Millrace;

final class Timestamp
{
    /** A number this large counts milliseconds, a smaller one seconds: the server draws the same line. */
    private const MILLISECONDS_FROM = 100_000_000_000;

    private const ISO = '/^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?\s?(?:Z|z|[+-]\d\d(?::?\d\d)?)?)?$/';

    private function __construct()
    {
    }

    public static function format(\DateTimeInterface $at): string
    {
        return \DateTimeImmutable::createFromInterface($at)
            ->setTimezone(new \DateTimeZone('UTC'))
            ->format('Y-m-d\TH:i:s.v\Z');
    }

    /** Reads what a host may give as an instant; null for what is none. */
    public static function read(mixed $given): ?string
    {
        if ($given instanceof \DateTimeInterface) {
            return self::format($given);
        }
        if (is_string($given) && is_numeric($given)) {
            $given = (float) $given;
        }
        if (is_int($given) || is_float($given)) {
            return self::fromNumber((float) $given);
        }
        return is_string($given) ? self::fromText($given) : null;
    }

    private static function fromNumber(float $given): ?string
    {
        if (!is_finite($given)) {
            return null;
        }
        $milliseconds = abs($given) >= self::MILLISECONDS_FROM ? $given : $given * 1000;
        // The years 0 and 9999: beyond them there is no ISO 8601 with four digits.
        if ($milliseconds < -62_167_219_200_000 || $milliseconds > 253_402_300_799_999) {
            return null;
        }
        $whole = (int) round($milliseconds);
        $seconds = intdiv($whole, 1000) - ($whole % 1000 < 0 ? 1 : 0);
        return gmdate('Y-m-d\TH:i:s', $seconds) . sprintf('.%03dZ', $whole - $seconds * 1000);
    }

    /** Only ISO 8601: what PHP understands besides, such as `tomorrow`, is a slip and never meant. */
    private static function fromText(string $given): ?string
    {
        if (preg_match(self::ISO, $given) !== 1) {
            return null;
        }
        try {
            $at = new \DateTimeImmutable(str_replace(',', '.', $given), new \DateTimeZone('UTC'));
        } catch (\Exception) {
            return null;
        }
        // 31 February would otherwise become 3 March.
        return str_starts_with($at->format('Y-m-d'), substr($given, 0, 10)) ? self::format($at) : null;
    }
}

<?php

declare(strict_types=1);

namespace Millrace\Tests;

use Millrace\Timestamp;
use PHPUnit\Framework\TestCase;

final class TimestampTest extends TestCase
{
    /** @return iterable<string, array{mixed, string|null}> */
    public static function instants(): iterable
    {
        yield 'seconds' => [1_354_408_208, '2012-12-02T00:30:08.000Z'];
        yield 'microtime keeps its fraction' => [1_354_408_208.276, '2012-12-02T00:30:08.276Z'];
        yield 'milliseconds' => [1_354_408_208_276, '2012-12-02T00:30:08.276Z'];
        yield 'digits' => ['1354408208', '2012-12-02T00:30:08.000Z'];
        yield 'ISO 8601 stays what it was' => ['2012-12-02T00:30:08.276Z', '2012-12-02T00:30:08.276Z'];
        yield 'ISO 8601 with an offset' => ['2012-12-02T01:30:08+01:00', '2012-12-02T00:30:08.000Z'];
        yield 'ISO 8601 with microseconds' => ['2012-12-02T00:30:08.276999Z', '2012-12-02T00:30:08.276Z'];
        yield 'ISO 8601 without a zone is UTC' => ['2012-12-02T00:30:08', '2012-12-02T00:30:08.000Z'];
        yield 'a day' => ['2012-12-02', '2012-12-02T00:00:00.000Z'];
        yield 'DateTime' => [new \DateTime('2012-12-02 01:30:08.276', new \DateTimeZone('+01:00')), '2012-12-02T00:30:08.276Z'];
        yield 'before 1970' => [-1.5, '1969-12-31T23:59:58.500Z'];
        yield 'the epoch' => [0, '1970-01-01T00:00:00.000Z'];
        yield 'a word' => ['tomorrow', null];
        yield 'a day that is not' => ['2012-02-31T00:00:00Z', null];
        yield 'an hour that is not' => ['2012-02-01T25:00:00Z', null];
        yield 'nothing' => ['', null];
        yield 'not a number' => [NAN, null];
        yield 'endless' => [INF, null];
        yield 'the year 0' => [-62_167_219_200_000, '0000-01-01T00:00:00.000Z'];
        yield 'before the year 0' => [-62_167_219_200_001, null];
        yield 'beyond the year 9999' => [1e18, null];
        yield 'a list' => [[1], null];
        yield 'true' => [true, null];
    }

    /** @dataProvider instants */
    public function testInstantsAreReadAndOthersAreNot(mixed $given, ?string $expected): void
    {
        $zone = date_default_timezone_get();
        date_default_timezone_set('Asia/Kolkata');
        self::assertSame($expected, Timestamp::read($given));
        date_default_timezone_set($zone);
    }
}

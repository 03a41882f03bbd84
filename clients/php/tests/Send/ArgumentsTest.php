<?php

declare(strict_types=1);

namespace Millrace\Tests\Send;

use Millrace\Send\Arguments;
use PHPUnit\Framework\TestCase;

final class ArgumentsTest extends TestCase
{
    public function testEveryOptionIsReadInBothForms(): void
    {
        $arguments = Arguments::parse([
            '--secret', 'wk', '--file=/tmp/a.log', '--host', 'http://127.0.0.1:8080', '--batch-size=7', '--dry-run', '--quiet',
        ]);

        self::assertInstanceOf(Arguments::class, $arguments);
        self::assertSame(['wk', '/tmp/a.log'], [$arguments->writeKey, $arguments->file]);
        self::assertSame(['http://127.0.0.1:8080', 7], [$arguments->host, $arguments->batchSize]);
        self::assertTrue($arguments->dryRun && $arguments->quiet);
    }

    public function testWhatIsNotGivenHasItsDefault(): void
    {
        $arguments = Arguments::parse(['--file', 'a.log'], 'from the environment');

        self::assertInstanceOf(Arguments::class, $arguments);
        self::assertSame(['from the environment', 'default', 100], [
            $arguments->writeKey, $arguments->host, $arguments->batchSize,
        ]);
        self::assertFalse($arguments->dryRun || $arguments->quiet);
    }

    public function testHelpNeedsNothingElse(): void
    {
        self::assertNull(Arguments::parse(['--help']));
    }

    /**
     * @dataProvider mistakes
     * @param list<string> $argv
     */
    public function testAMistakeIsTold(array $argv, string $expected): void
    {
        $problem = Arguments::parse($argv);

        self::assertIsString($problem);
        self::assertStringContainsString($expected, $problem);
    }

    /** @return iterable<string, array{list<string>, string}> */
    public static function mistakes(): iterable
    {
        yield 'no key' => [['--file', 'a.log'], '--secret WRITE_KEY is missing'];
        yield 'no file' => [['--secret', 'wk'], '--file LOG is missing'];
        yield 'a typo' => [['--secrets', 'wk'], '--secrets is no option'];
        yield 'no option' => [['a.log'], 'no option'];
        yield 'no value' => [['--secret', '--file', 'a.log'], '--secret needs a value'];
        yield 'no value at the end' => [['--file'], '--file needs a value'];
        yield 'twice' => [['--file', 'a', '--file', 'b'], 'twice'];
        yield 'a flag with a value' => [['--quiet=1'], 'takes no value'];
        yield 'a batch of none' => [['--secret', 'wk', '--file', 'a', '--batch-size', '0'], 'from 1 to 2500'];
        yield 'a batch of words' => [['--secret', 'wk', '--file', 'a', '--batch-size', 'many'], 'from 1 to 2500'];
    }
}

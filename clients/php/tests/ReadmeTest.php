<?php

declare(strict_types=1);

namespace Millrace\Tests;

use Millrace\ErrorCode;
use Millrace\OptionReader;
use PHPUnit\Framework\TestCase;

final class ReadmeTest extends TestCase
{
    public function testEveryCodeIsDocumentedAndNoOther(): void
    {
        $codes = array_map(static fn (ErrorCode $code): string => $code->value, ErrorCode::cases());
        self::assertEqualsCanonicalizing($codes, self::firstColumn('## Codes of'));
    }

    public function testEveryOptionIsDocumentedAndNoOther(): void
    {
        $known = (new \ReflectionClassConstant(OptionReader::class, 'KNOWN'))->getValue();
        self::assertIsArray($known);
        self::assertEqualsCanonicalizing($known, self::firstColumn('## Options'));
    }

    /** @return list<string> */
    private static function firstColumn(string $heading): array
    {
        $text = (string) file_get_contents(__DIR__ . '/../README.md');
        $section = explode("\n## ", explode($heading, $text, 2)[1] ?? '', 2)[0];
        preg_match_all('/^\| `(\w+)` \|/m', $section, $found);
        return $found[1];
    }
}

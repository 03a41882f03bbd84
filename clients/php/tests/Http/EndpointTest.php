<?php

declare(strict_types=1);

namespace Millrace\Tests\Http;

use Millrace\Http\Endpoint;
use Millrace\OptionError;
use PHPUnit\Framework\TestCase;

final class EndpointTest extends TestCase
{
    protected function tearDown(): void
    {
        putenv('MILLRACE_BASE_URL');
        putenv('MILLRACE_BASE_URL_EU');
    }

    /** @return iterable<string, array{string|null, bool, string}> host, ssl, where a batch goes */
    public static function addresses(): iterable
    {
        yield 'a name' => ['events.example.com', true, 'https://events.example.com/v1/batch'];
        yield 'a name without ssl' => ['events.example.com', false, 'http://events.example.com/v1/batch'];
        yield 'a name and a port' => ['events.example.com:8443', true, 'https://events.example.com:8443/v1/batch'];
        yield 'a scheme wins over ssl' => ['http://127.0.0.1:8080', true, 'http://127.0.0.1:8080/v1/batch'];
        yield 'a scheme wins over its absence' => ['https://events.example.com', false, 'https://events.example.com/v1/batch'];
        yield 'a path' => ['https://example.com/events/', true, 'https://example.com/events/v1/batch'];
        yield 'a path with the version' => ['https://example.com/events/v1', true, 'https://example.com/events/v1/batch'];
        yield 'usual ports need no naming' => ['http://example.com:80', true, 'http://example.com/v1/batch'];
        yield 'an address of version 6' => ['http://[::1]:8080', true, 'http://[::1]:8080/v1/batch'];
        yield 'the default region' => [null, true, 'https://us.example.com/v1/batch'];
        yield 'the default region by name' => ['default', true, 'https://us.example.com/v1/batch'];
        yield 'the default region by place' => ['Oregon', true, 'https://us.example.com/v1/batch'];
        yield 'the other region' => ['eu', true, 'https://eu.example.com/v1/batch'];
        yield 'the other region by place, without ssl' => ['dublin', false, 'http://eu.example.com/v1/batch'];
    }

    /** @dataProvider addresses */
    public function testAnAddressIsUnderstood(?string $host, bool $ssl, string $url): void
    {
        $regions = ['default' => 'https://us.example.com/v1', 'eu' => 'https://eu.example.com/v1'];
        self::assertSame($url, Endpoint::resolve('wk', $host, $ssl, $regions)->url());
        putenv('MILLRACE_BASE_URL=https://us.example.com/v1');
        putenv('MILLRACE_BASE_URL_EU=https://eu.example.com/v1');
        self::assertSame($url, Endpoint::resolve('wk', $host, $ssl)->url());
    }

    public function testWithoutAnyAddressItIsTheMillraceOfTheQuickStart(): void
    {
        self::assertSame('http://127.0.0.1:8080/v1/batch', Endpoint::resolve('wk')->url());
    }

    public function testARegionWithoutAnAddressSaysHowToGiveOne(): void
    {
        $this->expectException(OptionError::class);
        $this->expectExceptionMessage('MILLRACE_BASE_URL_EU');
        Endpoint::resolve('wk', 'eu');
    }

    /** @return iterable<string, array{string, string}> */
    public static function mistakes(): iterable
    {
        yield 'another scheme' => ['wk', 'ftp://example.com'];
        yield 'a user' => ['wk', 'https://me:secret@example.com'];
        yield 'a query' => ['wk', 'https://example.com/?a=1'];
        yield 'a line break' => ['wk', "https://example.com/\r\nX: y"];
        yield 'version 6 without brackets' => ['wk', '::1'];
        yield 'half a bracket' => ['wk', 'http://[::1'];
        yield 'port 0' => ['wk', 'http://example.com:0'];
        yield 'a space' => ['wk', 'exa mple.com'];
        yield 'a port that is none' => ['wk', 'https://example.com:99999'];
        yield 'no key' => ['', 'https://example.com'];
        yield 'a key with a colon' => ['a:b', 'https://example.com'];
        yield 'a key with a line break' => ["a\r\nX: y", 'https://example.com'];
    }

    /** @dataProvider mistakes */
    public function testAMistakeIsRefused(string $writeKey, string $host): void
    {
        $this->expectException(OptionError::class);
        Endpoint::resolve($writeKey, $host);
    }
}

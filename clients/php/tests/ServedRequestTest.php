<?php

declare(strict_types=1);

namespace Millrace\Tests;

use Millrace\ServedRequest;
use Millrace\Tests\Support\LibraryTestCase;
use Millrace\Tests\Support\Until;

final class ServedRequestTest extends LibraryTestCase
{
    public function testAPageServedByPhpItselfTellsItsRequest(): void
    {
        $address = str_replace('http://', '', $this->deadUrl());
        $log = "{$this->folder}/page.log";
        $silent = ['file', '/dev/null', 'w'];
        $command = [PHP_BINARY, '-d', 'display_errors=1', '-S', $address, __DIR__ . '/Support/page.php'];
        $server = proc_open($command, [['file', '/dev/null', 'r'], $silent, $silent], $pipes, null, ['PAGE_LOG' => $log]);
        self::assertIsResource($server);
        try {
            $connect = static fn (): mixed => @stream_socket_client("tcp://$address", $number, $reason, 1);
            Until::true(static fn (): bool => is_resource($connect()), 'the web server');
            $context = stream_context_create(['http' => ['header' => "Referer: https://search.example/?q=1\r\nX-Forwarded-Proto: https"]]);
            self::assertSame('served', file_get_contents("http://$address/pricing/eu?plan=pro", false, $context));
        } finally {
            proc_terminate($server);
            proc_close($server);
        }
        $expected = [
            'title' => 'Pricing', 'path' => '/pricing/eu', 'url' => "https://$address/pricing/eu?plan=pro",
            'referrer' => 'https://search.example/?q=1',
        ];
        self::assertEquals($expected, self::callsIn($log)[0]['properties']);
    }

    /** @return iterable<string, array{array<mixed>, array<string, string>}> */
    public static function requests(): iterable
    {
        yield 'none' => [['argv' => ['x']], []];
        yield 'an absolute form' => [
            ['REQUEST_URI' => 'http://proxy.example/a/b?c', 'HTTP_HOST' => 'h'], ['path' => '/a/b', 'url' => 'http://h/a/b?c'],
        ];
        yield 'a server without a Host header' => [
            ['REQUEST_URI' => '/a', 'SERVER_NAME' => 's', 'SERVER_PORT' => '8080', 'HTTPS' => 'off'], ['path' => '/a', 'url' => 'http://s:8080/a'],
        ];
        yield 'no host at all' => [['REQUEST_URI' => '/a'], ['path' => '/a']];
        yield 'odd types' => [['REQUEST_URI' => '/a', 'HTTP_HOST' => ['h'], 'HTTP_REFERER' => 1], ['path' => '/a']];
    }

    /**
     * @dataProvider requests
     * @param array<mixed> $server
     * @param array<string, string> $expected
     */
    public function testARequestIsReadAsFarAsItIsKnown(array $server, array $expected): void
    {
        self::assertEquals($expected, ServedRequest::properties($server));
    }
}

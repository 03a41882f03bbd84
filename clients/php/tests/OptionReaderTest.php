<?php

declare(strict_types=1);

namespace Millrace\Tests;

use Millrace\OptionError;
use Millrace\OptionReader;
use PHPUnit\Framework\TestCase;

final class OptionReaderTest extends TestCase
{
    public function testDefaultsAreTheSpecified(): void
    {
        $options = (new OptionReader([]))->options('wk');
        self::assertSame('lib_curl', $options->consumer);
        self::assertFalse($options->debug);
        self::assertNull($options->errorHandler);
        self::assertSame(10_000, $options->maxQueueSize);
        self::assertSame(100, $options->batchSize);
        self::assertSame(0.5, $options->timeout);
        self::assertSame('/tmp/analytics.log', $options->filename);
        self::assertSame('https', (new OptionReader(['host' => 'h']))->options('wk')->endpoint->scheme);
    }

    public function testNamesOfTheReferenceLibraryAreUnderstood(): void
    {
        $reader = new OptionReader([
            'compress_request' => true, 'flush_at' => 20, 'curl_timeout' => 2, 'curl_connecttimeout' => 1, 'filepermissions' => 0o644,
            'flush_interval' => 10_000, 'max_queue_size_bytes' => 1, 'nonsense' => 1,
        ]);
        $options = $reader->options('wk');
        self::assertSame(
            [true, 20, 2.0, 1.0, 0o644],
            [$options->gzip, $options->batchSize, $options->requestTimeout, $options->connectTimeout, $options->fileMode],
        );
        self::assertSame(['nonsense'], $reader->unknown);
    }

    /** @return iterable<string, array{array<string, mixed>, string}> options, name that the message has */
    public static function mistakes(): iterable
    {
        yield 'another consumer' => [['consumer' => 'pigeon'], 'lib_curl, fork_curl, socket, file'];
        yield 'a handler that cannot be called' => [['error_handler' => 'no_such_function'], 'error_handler'];
        yield 'a queue of nothing' => [['max_queue_size' => 0], 'max_queue_size'];
        yield 'a batch the server refuses' => [['batch_size' => 2_501], 'batch_size'];
        yield 'a timeout that is no number' => [['request_timeout' => NAN], 'request_timeout'];
        yield 'no timeout at all' => [['timeout' => 0], 'timeout'];
        yield 'a host that is a list' => [['host' => ['a']], 'host'];
        yield 'a word for a switch' => [['ssl' => 'maybe'], 'ssl'];
        yield 'an authority that is not there' => [['ca_file' => '/nonexistent.pem'], '/nonexistent.pem'];
        yield 'a third region' => [['regions' => ['mars' => 'https://mars.example']], 'regions'];
        yield 'a logger that logs nothing' => [['logger' => new \stdClass()], 'logger'];
    }

    /**
     * @dataProvider mistakes
     * @param array<string, mixed> $options
     */
    public function testAMistakeIsNamed(array $options, string $named): void
    {
        $this->expectException(OptionError::class);
        $this->expectExceptionMessage($named);
        (new OptionReader($options))->options('wk');
    }
}

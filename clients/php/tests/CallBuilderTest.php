<?php

declare(strict_types=1);

namespace Millrace\Tests;

use Millrace\CallBuilder;
use Millrace\ErrorCode;
use Millrace\Identity;
use Millrace\Refusal;
use PHPUnit\Framework\TestCase;

final class CallBuilderTest extends TestCase
{
    private Identity $identity;
    private CallBuilder $builder;

    /** @var array<mixed> */
    private array $server = [];

    protected function setUp(): void
    {
        $this->identity = new Identity();
        $this->builder = new CallBuilder('lib_curl', $this->identity);
        $this->server = $_SERVER;
    }

    protected function tearDown(): void
    {
        $_SERVER = $this->server;
    }

    public function testACallWithoutIdsIsAboutWhoWasIdentifiedLast(): void
    {
        $this->built('identify', ['userId' => 'u1', 'anonymousId' => 'a1']);
        $call = $this->built('track', ['event' => 'E']);
        self::assertSame(['u1', 'a1'], [$call['userId'], $call['anonymousId']]);
        $this->built('identify', ['userId' => 'u2']);
        $call = $this->built('page', 'Home');
        self::assertSame('u2', $call['userId']);
        self::assertArrayNotHasKey('anonymousId', $call);
        $own = $this->built('track', ['event' => 'E', 'anonymousId' => 'a3']);
        self::assertArrayNotHasKey('userId', $own);
    }

    public function testAfterAnAliasCallsAreAboutTheNewUser(): void
    {
        $this->built('identify', ['userId' => 'u1', 'anonymousId' => 'a1']);
        $this->built('alias', ['userId' => 'u2', 'previousId' => 'u1']);
        $call = $this->built('track', ['event' => 'E']);
        self::assertSame(['u2', 'a1'], [$call['userId'], $call['anonymousId']]);
    }

    public function testWhereNobodyWasIdentifiedTheAnonymousIdIsNew(): void
    {
        $one = $this->built('track', ['event' => 'E'])['anonymousId'];
        self::assertMatchesRegularExpression('/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/', $one);
        self::assertNotSame($one, $this->built('track', ['event' => 'E'])['anonymousId']);
        $identified = $this->built('identify', ['traits' => ['a' => 1]])['anonymousId'];
        self::assertSame($identified, $this->built('track', ['event' => 'E'])['anonymousId']);
        $this->identity->forget();
        self::assertNotSame($identified, $this->built('track', ['event' => 'E'])['anonymousId']);
    }

    public function testIdsMayBeNumbersAndObjectsThatAreText(): void
    {
        $name = new class {
            public function __toString(): string
            {
                return 'text';
            }
        };
        self::assertSame('0', $this->built('track', ['event' => 'E', 'userId' => 0])['userId']);
        self::assertSame('text', $this->built('track', ['event' => 'E', 'userId' => $name])['userId']);
    }

    public function testNullAndEmptyIdsAreAbsent(): void
    {
        $this->built('identify', ['userId' => 'u1']);
        $call = $this->built('track', ['event' => 'E', 'userId' => null, 'anonymousId' => '']);
        self::assertSame('u1', $call['userId']);
        self::assertArrayNotHasKey('anonymousId', $call);
    }

    /** @return iterable<string, array{string, mixed, ErrorCode}> */
    public static function misuses(): iterable
    {
        yield 'no array' => ['track', 'Done', ErrorCode::InvalidCall];
        yield 'nothing' => ['identify', null, ErrorCode::InvalidCall];
        yield 'a track without event' => ['track', [], ErrorCode::MissingField];
        yield 'a track with an empty event' => ['track', ['event' => ''], ErrorCode::MissingField];
        yield 'a track whose event is a list' => ['track', ['event' => ['E']], ErrorCode::InvalidField];
        yield 'a group without groupId' => ['group', ['userId' => 'u1'], ErrorCode::MissingField];
        yield 'an alias without userId' => ['alias', ['previousId' => 'u1'], ErrorCode::MissingField];
        yield 'an alias by anonymousId' => ['alias', ['anonymousId' => 'a1', 'previousId' => 'u1'], ErrorCode::MissingField];
        yield 'an alias without previousId' => ['alias', ['userId' => 'u1'], ErrorCode::MissingField];
        yield 'a category alone' => ['page', ['category' => 'Docs'], ErrorCode::CategoryWithoutName];
        yield 'a category alone on a screen' => ['screen', ['category' => 'Docs', 'name' => ''], ErrorCode::CategoryWithoutName];
        yield 'true as userId' => ['track', ['event' => 'E', 'userId' => true], ErrorCode::InvalidField];
        yield 'traits that are text' => ['identify', ['traits' => 'x'], ErrorCode::InvalidField];
        yield 'a list of properties' => ['track', ['event' => 'E', 'properties' => [1, 2]], ErrorCode::InvalidField];
        yield 'a list of integrations' => ['track', ['event' => 'E', 'integrations' => ['CRM']], ErrorCode::InvalidField];
        yield 'a context that is a number' => ['track', ['event' => 'E', 'context' => 1], ErrorCode::InvalidField];
        yield 'a word for a time' => ['track', ['event' => 'E', 'timestamp' => 'now'], ErrorCode::InvalidTimestamp];
        yield 'a messageId that is long in UTF-16' => ['track', ['event' => 'E', 'messageId' => str_repeat('😀', 51)], ErrorCode::InvalidField];
        yield 'a date for traits' => ['identify', ['traits' => new \DateTime()], ErrorCode::InvalidField];
        yield 'a long userId' => ['identify', ['userId' => str_repeat('u', 513)], ErrorCode::InvalidField];
        yield 'a long messageId' => ['track', ['event' => 'E', 'messageId' => str_repeat('m', 101)], ErrorCode::InvalidField];
        yield 'a number JSON has not' => ['track', ['event' => 'E', 'properties' => ['x' => INF]], ErrorCode::NotEncodable];
        yield 'an open file' => ['track', ['event' => 'E', 'properties' => ['x' => STDIN]], ErrorCode::NotEncodable];
        yield 'more than can be said' => ['track', ['event' => str_repeat('E', 32_768)], ErrorCode::CallTooLarge];
    }

    /** @dataProvider misuses */
    public function testMisuseIsRefusedWithItsCode(string $type, mixed $given, ErrorCode $code): void
    {
        try {
            $this->builder->build($type, $given);
        } catch (Refusal $refusal) {
            self::assertSame($code, $refusal->errorCode);
            self::assertNotSame('', $refusal->getMessage());
            return;
        }
        self::fail('it was taken');
    }

    public function testARefusedIdentifyChangesNobody(): void
    {
        $this->built('identify', ['userId' => 'u1']);
        try {
            $this->builder->build('identify', ['userId' => 'u2', 'traits' => ['x' => NAN]]);
        } catch (Refusal) {
            self::assertSame('u1', $this->built('track', ['event' => 'E'])['userId']);
        }
    }

    public function testAStringGivenToPageIsItsName(): void
    {
        self::assertSame('Pricing', $this->built('page', 'Pricing')['name']);
    }

    public function testAPageIsFilledFromTheRequestBeingServed(): void
    {
        $_SERVER = [
            'REQUEST_URI' => '/docs/php?q=1', 'HTTP_HOST' => 'shop.example:8443', 'HTTPS' => 'on',
            'HTTP_REFERER' => 'https://search.example/',
        ];
        $call = $this->built('page', ['name' => 'PHP', 'properties' => ['path' => '/mine', 'colour' => 'red']]);
        $expected = [
            'path' => '/mine', 'colour' => 'red', 'url' => 'https://shop.example:8443/docs/php?q=1',
            'referrer' => 'https://search.example/', 'title' => 'PHP',
        ];
        self::assertEquals($expected, $call['properties']);
        self::assertArrayNotHasKey('properties', $this->built('screen', 'PHP'));
    }

    public function testAVisitorCannotMakeAPageCallTooLarge(): void
    {
        $_SERVER = ['REQUEST_URI' => '/' . str_repeat('x', 60_000), 'HTTP_HOST' => 'h', 'HTTP_REFERER' => str_repeat("\xff", 60_000)];
        self::assertLessThan(32_768, strlen($this->builder->build('page', [])));
    }

    public function testOutsideARequestAPageHasWhatItWasGiven(): void
    {
        unset($_SERVER['REQUEST_URI']);
        self::assertStringContainsString('"properties":{}', $this->builder->build('page', 'Home'));
    }

    public function testEmptyArraysAreObjectsOnTheWire(): void
    {
        $json = $this->builder->build('track', ['event' => 'E', 'properties' => [], 'integrations' => []]);
        self::assertStringContainsString('"properties":{}', $json);
        self::assertStringContainsString('"integrations":{}', $json);
    }

    public function testDatesWithinTraitsAreInstants(): void
    {
        $call = $this->built('identify', ['traits' => ['since' => new \DateTimeImmutable('2020-02-03T04:05:06Z'), 'deep' => [(object) ['at' => new \DateTime('@0'), 'none' => new \stdClass()]]]]);
        self::assertSame('2020-02-03T04:05:06.000Z', $call['traits']['since']);
        self::assertSame('1970-01-01T00:00:00.000Z', $call['traits']['deep'][0]['at']);
        self::assertStringContainsString('"none":{}', $this->builder->build('identify', ['traits' => ['none' => new \stdClass()]]));
    }

    public function testTheHostsOwnVariablesStayAsTheyAre(): void
    {
        $date = new \DateTimeImmutable('@0');
        $traits = ['since' => &$date, 'deep' => ['since' => &$date]];
        $this->built('identify', ['traits' => $traits]);
        self::assertInstanceOf(\DateTimeImmutable::class, $date);
    }

    public function testTextThatIsNotUtf8IsMendedAndFloatsStayFloats(): void
    {
        $json = $this->builder->build('track', ['event' => "caf\xe9", 'properties' => ['price' => 10.0]]);
        self::assertStringContainsString("\"caf\u{fffd}\"", $json);
        self::assertStringContainsString('"price":10.0', $json);
    }

    public function testWhatTheHostSaysOfItselfWins(): void
    {
        $call = $this->built('track', [
            'event' => 'E', 'type' => 'identify', 'messageId' => 'm1', 'context' => ['ip' => '1.2.3.4', 'library' => ['name' => 'mine']], 'custom' => [1],
        ]);
        self::assertSame('track', $call['type']);
        self::assertSame('m1', $call['messageId']);
        self::assertSame(['ip' => '1.2.3.4', 'library' => ['name' => 'mine']], $call['context']);
        self::assertSame([1], $call['custom']);
    }

    /** @return array<string, mixed> */
    private function built(string $type, mixed $given): array
    {
        /** @var array<string, mixed> */
        return json_decode($this->builder->build($type, $given), true, 512, JSON_THROW_ON_ERROR);
    }
}

<?php

declare(strict_types=1);

namespace Millrace\Tests\Send;

use Millrace\Batch;

/** What of a line goes onto the wire. */
final class CallTest extends SendTestCase
{
    public function testALineIsSentAsItWasWritten(): void
    {
        $sender = new RawSender();
        $line = '{"messageId":"m1", "type":"track","userId":12345678901234567890,"properties":{"empty":{},"price":10.0}}';
        file_put_contents($this->log, "$line\r\n");

        $this->runWith($sender);

        self::assertStringStartsWith('{"batch":[' . $line . '],"sentAt":"', $sender->bodies[0]);
        self::assertMatchesRegularExpression('/"sentAt":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"}$/', $sender->bodies[0]);
    }

    public function testALineWithoutAMessageIdHasTheSameOneEachTimeItIsSentAndNoOtherLineHasIt(): void
    {
        $bare = '{"type":"track","userId":"u1","event":"Seen","properties":{}}';
        $empty = '{"messageId":"","type":"track","properties":{}}';
        file_put_contents($this->log, "$bare\n$bare\n$empty\n");
        $first = new RawSender(status: 500);
        $this->runWith($first);
        $second = new RawSender();
        $this->runWith($second);

        $ids = $this->idsOf($first->bodies[0]);
        self::assertCount(3, array_unique($ids));
        self::assertSame($ids, $this->idsOf($second->bodies[0]));
        self::assertStringContainsString('"event":"Seen","properties":{}', $second->bodies[0]);
    }

    public function testNoRequestIsLargerThanTheCollectorTakes(): void
    {
        $padding = str_repeat('x', 9_900);
        file_put_contents($this->log, implode('', array_map(static fn (int $n) => self::line($n, $padding), range(0, 199))));
        $sender = new RawSender();

        $this->runWith($sender, 200);

        $sizes = array_map('strlen', $sender->bodies);
        self::assertLessThanOrEqual(Batch::BYTES_MAX, max($sizes));
        self::assertGreaterThan(Batch::BYTES_MAX - 20_000, $sizes[0]);
        self::assertCount(200, array_merge(...array_map($this->idsOf(...), $sender->bodies)));
    }

    /** @return list<string> */
    private function idsOf(string $body): array
    {
        preg_match_all('/"messageId":"([^"]+)"/', $body, $matches);

        return $matches[1];
    }
}

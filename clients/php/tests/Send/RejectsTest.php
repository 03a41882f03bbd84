<?php

declare(strict_types=1);

namespace Millrace\Tests\Send;

use Millrace\Http\Reply;
use Millrace\Send\ExitCode;
use Millrace\Send\Lines;

/** Which lines end in the rejects file, and that no other does. */
final class RejectsTest extends SendTestCase
{
    public function testLinesThatAreNoCallsAreKeptByteForByteWithTheirReasonAndCostNoOther(): void
    {
        $latin = "{\"type\":\"track\",\"event\":\"caf\xe9\"}";
        file_put_contents($this->log, self::line(0) . "half a li\n\n[1]\n$latin\n" . self::line(1) . '{"type":"tra');
        $sender = ScriptedSender::accepting();

        $report = $this->runWith($sender);

        self::assertSame(ExitCode::Rejected, $report->code);
        self::assertSame([2, 4], [$report->accepted, $report->rejected]);
        self::assertSame(['m0', 'm1'], $sender->messageIds());
        $rejects = $this->rejects();
        self::assertSame(['invalid_json', 'not_an_object', 'invalid_json', 'invalid_json'], array_column($rejects, 'code'));
        self::assertSame(['half a li', '[1]', '{"type":"tra'], array_column($rejects, 'line'));
        self::assertSame($latin, base64_decode((string) ($rejects[2]['lineBase64'] ?? ''), true));
        self::assertSame(strlen(self::line(0)), $rejects[0]['offset']);
        self::assertSame(0o600, fileperms("{$this->log}.rejects") & 0o777);
        self::assertSame(['analytics.log.rejects'], $this->files(withLock: false));
    }

    public function testCallsTheCollectorRejectedAreKeptWithItsCode(): void
    {
        file_put_contents($this->log, self::lines(0, 4));
        $sender = new ScriptedSender(static fn (): Reply => new Reply(200, json_encode([
            'success' => true, 'accepted' => 3, 'rejectedCount' => 1,
            'rejected' => [['index' => 2, 'messageId' => 'm2', 'code' => 'call_too_large']],
        ], JSON_THROW_ON_ERROR)));

        $report = $this->runWith($sender);

        self::assertSame([3, 1], [$report->accepted, $report->rejected]);
        self::assertSame('call_too_large', $this->rejects()[0]['code']);
        self::assertSame(rtrim(self::line(2)), $this->rejects()[0]['line']);
    }

    public function testMoreRejectedCallsThanAnReplyListsAreAllFound(): void
    {
        file_put_contents($this->log, self::lines(0, 500));
        $sender = new ScriptedSender(static function (array $calls): Reply {
            $odd = array_filter($calls, static fn (array $call): bool => (int) substr((string) $call['messageId'], 1) % 2 === 1);
            $listed = array_map(static fn (int $index): array => ['index' => $index, 'code' => 'odd'], array_keys($odd));

            return new Reply(200, json_encode([
                'success' => true, 'rejected' => array_slice($listed, 0, 100), 'rejectedCount' => count($listed),
            ], JSON_THROW_ON_ERROR));
        });

        $report = $this->runWith($sender, batchSize: 500);

        self::assertSame([250, 250], [$report->accepted, $report->rejected]);
        self::assertCount(250, $this->rejects());
    }

    public function testTheLineThatMakesABodyUnacceptableIsFoundAndTheOthersAreSent(): void
    {
        file_put_contents($this->log, self::lines(0, 100));
        $sender = new ScriptedSender(static fn (array $calls): Reply => in_array('m63', array_column($calls, 'messageId'), true)
            ? new Reply(400, '{"success":false,"code":"invalid_json","message":"the body is not JSON in UTF-8"}')
            : new Reply(200, '{"success":true}'));

        $report = $this->runWith($sender);

        self::assertSame([99, 1], [$report->accepted, $report->rejected]);
        self::assertSame(rtrim(self::line(63)), $this->rejects()[0]['line']);
        self::assertLessThan(20, count($sender->sent));
    }

    public function testALineThatNoRequestHoldsIsRejectedWholeInPiecesAndTheNextIsSent(): void
    {
        $giant = rtrim(self::line(1, str_repeat('x', 3 * Lines::BYTES_HELD_MAX)));
        $large = rtrim(self::line(2, str_repeat('y', 600_000)));
        file_put_contents($this->log, self::line(0) . "$giant\n$large\n" . self::line(3));
        $sender = ScriptedSender::accepting();

        $report = $this->runWith($sender);

        self::assertSame(['m0', 'm3'], $sender->messageIds());
        self::assertSame([2, 2], [$report->accepted, $report->rejected]);
        $rejects = $this->rejects();
        self::assertSame([1, 2, 3, 4], array_slice(array_column($rejects, 'piece'), 0, 4));
        self::assertSame($giant, implode('', array_column(array_slice($rejects, 0, 4), 'line')));
        self::assertSame($large, $rejects[4]['line']);
    }

    public function testWhatACrashedRunWroteBeyondItsPositionIsTakenBack(): void
    {
        file_put_contents("{$this->log}.rejects", "{\"code\":\"older\"}\n");
        file_put_contents($this->log, "bad\n" . self::lines(0, 2) . "worse\n" . self::line(2));
        $down = new ScriptedSender(static fn (): Reply => new Reply(500));
        self::assertSame(ExitCode::Temporary, $this->runWith($down, 2)->code);
        self::assertSame(['older', 'invalid_json', 'invalid_json'], array_column($this->rejects(), 'code'));
        $half = new ScriptedSender(static fn (array $calls): Reply => new Reply(count($calls) === 2 ? 200 : 500));
        self::assertSame(ExitCode::Temporary, $this->runWith($half, 2)->code);

        $report = $this->runWith(ScriptedSender::accepting(), 2);

        self::assertSame([ExitCode::Rejected, 2], [$report->code, $report->rejected]);
        self::assertSame(['older', 'invalid_json', 'invalid_json'], array_column($this->rejects(), 'code'));
        self::assertSame(['bad', 'worse'], array_column($this->rejects(), 'line'));
    }
}

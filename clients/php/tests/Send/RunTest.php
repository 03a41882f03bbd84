<?php

declare(strict_types=1);

namespace Millrace\Tests\Send;

use Millrace\Http\Reply;
use Millrace\Send\ExitCode;
use Millrace\Send\RunLock;

/** What a run does to the files, by what the collector answers. */
final class RunTest extends SendTestCase
{
    public function testAnAcceptedLogIsRemovedAndNothingIsLeftButTheLock(): void
    {
        file_put_contents($this->log, self::lines(0, 250));
        $sender = ScriptedSender::accepting();

        $report = $this->runWith($sender);

        self::assertSame(ExitCode::Done, $report->code);
        self::assertSame(250, $report->accepted);
        self::assertSame([100, 100, 50], array_map('count', $sender->sent));
        self::assertSame(self::ids(0, 250), $sender->messageIds());
        self::assertSame(['analytics.log.lock'], $this->files());
    }

    public function testThereIsNothingToDoWithoutALog(): void
    {
        $report = $this->runWith(ScriptedSender::accepting());

        self::assertSame(ExitCode::Done, $report->code);
        self::assertSame(0, $report->accepted);
    }

    public function testATemporaryFailureKeepsTheLogAndTheNextRunGoesOnWhereThisOneStopped(): void
    {
        file_put_contents($this->log, self::lines(0, 250));
        $failing = new ScriptedSender(static fn (array $calls, int $request): Reply => $request === 0
            ? new Reply(200, '{"success":true}')
            : new Reply(503, '{"success":false,"code":"log_unavailable","message":"away"}'));

        $report = $this->runWith($failing);

        self::assertSame(ExitCode::Temporary, $report->code);
        self::assertStringContainsString('log_unavailable', $report->line());
        self::assertCount(5, $failing->sent, 'one batch accepted, the second tried four times');
        self::assertCount(3, $this->pauses);

        $accepting = ScriptedSender::accepting();
        self::assertSame(ExitCode::Done, $this->runWith($accepting)->code);
        self::assertSame(self::ids(100, 250), $accepting->messageIds());
        self::assertSame([], $this->files(withLock: false));
    }

    public function testALogIsSentAlthoughHowFarCannotBeWritten(): void
    {
        $taken = "{$this->log}.20260101T000000000000-00000000.taken";
        file_put_contents($taken, self::lines(0, 250));
        // A full disk has no room for it; neither has a folder in its place.
        mkdir("$taken.position.next");
        $sender = ScriptedSender::accepting();

        $report = $this->runWith($sender);

        rmdir("$taken.position.next");
        self::assertSame(ExitCode::Done, $report->code);
        self::assertSame(self::ids(0, 250), $sender->messageIds());
        self::assertSame([], $this->files(withLock: false));
    }

    public function testWhileALogWaitsTheLiveOneStaysOneFileAndGoesAfterIt(): void
    {
        file_put_contents($this->log, self::lines(0, 10));
        $down = new ScriptedSender(static fn (): Reply => new Reply(0, error: 'refused'));
        self::assertSame(ExitCode::Temporary, $this->runWith($down)->code);
        file_put_contents($this->log, self::lines(10, 20));
        self::assertSame(ExitCode::Temporary, $this->runWith($down)->code);
        file_put_contents($this->log, self::lines(20, 30), FILE_APPEND);

        $taken = preg_grep('/\.taken$/', $this->files());
        self::assertIsArray($taken);
        self::assertCount(1, $taken);
        $accepting = ScriptedSender::accepting();
        self::assertSame(ExitCode::Done, $this->runWith($accepting)->code);
        self::assertSame(self::ids(0, 30), $accepting->messageIds());
    }

    public function testRetryAfterIsWaitedForWhereItIsShortAndLeftToTheNextRunWhereItIsLong(): void
    {
        file_put_contents($this->log, self::line(0));
        $soon = new ScriptedSender(static fn (array $calls, int $request): Reply => $request < 2
            ? new Reply(429, '{"success":false,"code":"over_quota"}', '', 7)
            : new Reply(200, '{"success":true}'));
        self::assertSame(ExitCode::Done, $this->runWith($soon)->code);
        self::assertSame([7_000, 7_000], $this->pauses);

        file_put_contents($this->log, self::line(0));
        $late = new ScriptedSender(static fn (): Reply => new Reply(429, '{"success":false,"code":"over_quota"}', '', 300));
        self::assertSame(ExitCode::Temporary, $this->runWith($late)->code);
        self::assertCount(1, $late->sent);
    }

    public function testAServerThatDoesNotAnswerInTimeIsLeftToTheNextRun(): void
    {
        file_put_contents($this->log, self::line(0));
        $slow = new ScriptedSender(static fn (): Reply => Reply::unanswered('too late', true));

        self::assertSame(ExitCode::Temporary, $this->runWith($slow)->code);
        self::assertCount(1, $slow->sent);
    }

    /** @dataProvider refusals */
    public function testARefusalThatIsNotTheLinesFaultKeepsTheLogAndIsNotTriedAgain(Reply $answer, string $expected): void
    {
        file_put_contents($this->log, self::lines(0, 3));
        $sender = new ScriptedSender(static fn (): Reply => $answer);

        $report = $this->runWith($sender);

        self::assertSame(ExitCode::Refused, $report->code);
        self::assertStringContainsString($expected, $report->line());
        self::assertCount(1, $sender->sent);
        self::assertCount(1, preg_grep('/\.taken$/', $this->files()) ?: []);
        self::assertFileDoesNotExist("{$this->log}.rejects");
    }

    /** @return iterable<string, array{Reply, string}> */
    public static function refusals(): iterable
    {
        yield 'an unknown key' => [new Reply(401, '{"success":false,"code":"unknown_write_key"}'), 'unknown_write_key'];
        yield 'another region' => [new Reply(400, '{"success":false,"code":"region_not_allowed"}'), 'region_not_allowed'];
        yield 'a redirect' => [new Reply(301), 'redirects'];
        yield 'no such path' => [new Reply(404, '<h1>Not Found</h1>'), 'http_404'];
    }

    public function testA200ThatIsNotTheCollectorsRemovesNothing(): void
    {
        file_put_contents($this->log, self::line(0));
        $sender = new ScriptedSender(static fn (): Reply => new Reply(200, '<h1>Welcome to the hotel</h1>'));

        self::assertSame(ExitCode::Temporary, $this->runWith($sender)->code);
        self::assertCount(1, preg_grep('/\.taken$/', $this->files()) ?: []);
    }

    public function testASecondRunFindsTheFirstAtWork(): void
    {
        file_put_contents($this->log, self::line(0));
        $lock = RunLock::take($this->log);
        self::assertNotNull($lock);

        self::assertSame(ExitCode::Busy, $this->runWith(ScriptedSender::accepting())->code);
        $lock->release();
        self::assertSame(ExitCode::Done, $this->runWith(ScriptedSender::accepting())->code);
    }

    public function testALogThatCannotBeRenamedIsToldAndKept(): void
    {
        file_put_contents("{$this->folder}/elsewhere", self::line(0));
        symlink("{$this->folder}/elsewhere", $this->log);

        $report = $this->runWith(ScriptedSender::accepting());

        self::assertSame(ExitCode::Files, $report->code);
        self::assertStringContainsString('symbolic link', $report->line());
        self::assertFileExists("{$this->folder}/elsewhere");
    }
}

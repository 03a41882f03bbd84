<?php

declare(strict_types=1);

namespace Millrace\Tests;

use Millrace\Tests\Support\LibraryTestCase;
use Millrace\Tests\Support\Page;

/** The facade is one for a whole process, so each of these is a process of its own. */
final class ClientTest extends LibraryTestCase
{
    public function testEveryMethodLeadsToTheOneClient(): void
    {
        $this->page(<<<'PHP'
            use Millrace\Client;
            Client::init('wk', $options);
            Client::identify(['userId' => 'u1']);
            Client::track(['event' => 'E']);
            Client::page('Home');
            Client::screen('Start');
            Client::group(['groupId' => 'g1']);
            Client::alias(['userId' => 'u2', 'previousId' => 'u1']);
            Client::reset();
            Client::track(['event' => 'F']);
            Client::track();
            echo Client::dropped(), Client::flush() ? ' flushed' : ' not';
            PHP, '1 flushed');
        $calls = self::callsIn("{$this->folder}/log");
        self::assertSame(['identify', 'track', 'page', 'screen', 'group', 'alias', 'track'], array_column($calls, 'type'));
        self::assertSame(['u1', 'u1', 'u1', 'u1', 'u1', 'u2'], array_column($calls, 'userId'));
    }

    public function testWithoutInitThePageGoesOn(): void
    {
        $this->page('echo Millrace\Client::track(["event" => "E"]) ? "taken" : "not taken", Millrace\Client::flush() ? "" : ", nothing flushed";', 'not taken, nothing flushed');
    }

    public function testASecondInitSendsWhatTheFirstHad(): void
    {
        $receiver = $this->receiver();
        Page::run(<<<'PHP'
            Millrace\Client::init('one', $options);
            Millrace\Client::track(['event' => 'One']);
            Millrace\Client::init('two', $options);
            Millrace\Client::track(['event' => 'Two']);
            PHP, ['host' => $receiver->url(), 'spool' => $this->spool()]);
        $receiver->waitForCalls(2);
        $keys = array_map(static fn (array $request): string => $request['headers']['authorization'], $receiver->requests());
        self::assertSame(['Basic ' . base64_encode('one:'), 'Basic ' . base64_encode('two:')], $keys);
    }

    public function testAMistakeInInitIsThrownAndNamed(): void
    {
        $this->page('try { Millrace\Client::init("", $options); } catch (InvalidArgumentException $e) { echo $e->getMessage(); }', 'The write key must be printable characters without spaces and colons: copy it from the source\'s settings.');
    }

    public function testALoggerThatFailsDoesNotSilenceTheHandler(): void
    {
        $logger = new class {
            public function debug(): void
            {
            }

            public function warning(): void
            {
                throw new \LogicException('not me');
            }
        };
        $this->analytics(['logger' => $logger])->track();
        self::assertSame(['invalid_call'], $this->codes());
    }

    public function testAForkedChildDoesNotSendWhatItsParentWill(): void
    {
        if (!function_exists('pcntl_fork')) {
            self::markTestSkipped('needs ext-pcntl');
        }
        $receiver = $this->receiver();
        Page::run(<<<'PHP'
            Millrace\Client::init('wk', $options);
            Millrace\Client::track(['event' => 'E']);
            if (($child = pcntl_fork()) === 0) {
                exit;
            }
            pcntl_waitpid($child, $status);
            PHP, ['host' => $receiver->url(), 'spool' => $this->spool()]);
        self::assertCount(1, $receiver->waitForCalls(1));
        self::assertCount(1, $receiver->requests());
    }

    public function testCodeOfTheReferenceLibraryRunsUnchangedOnTheShim(): void
    {
        $shim = var_export(dirname(__DIR__) . '/shim.php', true);
        $this->page("require $shim;" . <<<'PHP'
            use Segment\Segment;
            Segment::init('wk', $options + ['flush_at' => 10, 'compress_request' => false]);
            echo Segment::track(['userId' => 'u1', 'event' => 'Static']) ? 'taken' : 'refused';
            $client = new \Segment\Client('wk', $options);
            echo $client->track(['userId' => 'u1', 'event' => 'Instance']) ? ' taken' : ' refused';
            \Segment::page(['userId' => 'u1', 'name' => 'Old']);
            Segment::flush();
            PHP, 'taken taken');
        self::assertSame(['track', 'track', 'page'], array_column(self::callsIn("{$this->folder}/log"), 'type'));
    }

    public function testTheShimIsOffUnlessRequired(): void
    {
        $this->page('echo class_exists("Segment\\\\Segment") || class_exists("Segment") ? "on" : "off";', 'off');
    }

    private function page(string $code, string $says): void
    {
        [$status, $said] = Page::run($code, ['consumer' => 'file', 'filename' => "{$this->folder}/log"]);
        self::assertSame([$says, 0], [$said, $status]);
    }
}

<?php

declare(strict_types=1);

namespace Millrace\Tests\Consumer;

final class SocketTest extends NetworkConsumerTestCase
{
    protected function name(): string
    {
        return 'socket';
    }

    protected function manyCalls(): int
    {
        return 5_000;
    }

    /** Where the machine is too busy for a connection within the timeout, a call is in the spool: not lost either. */
    protected function arrivedCount(): int
    {
        return parent::arrivedCount() + count($this->spooled());
    }

    public function testEachCallIsARequestThatNobodyWaitsFor(): void
    {
        $receiver = $this->receiver(['delayMs' => 3_000]);
        $analytics = $this->analytics($this->to($receiver->url()));
        $began = microtime(true);
        self::assertTrue($analytics->track(['event' => 'One']));
        self::assertTrue($analytics->track(['event' => 'Two']));
        self::assertLessThan(2.5, microtime(true) - $began);
        self::assertSame(['One', 'Two'], array_column($receiver->waitForCalls(2), 'event'));
        self::assertCount(2, $receiver->requests());
    }

    public function testUnderDebugTheAnswerEndsWhereItSaysAlsoOnAConnectionThatStaysOpen(): void
    {
        ini_set('error_log', '/dev/null');
        $began = microtime(true);
        foreach ([['body' => '{}'], ['status' => 204, 'body' => '']] as $answer) {
            self::assertTrue($this->analytics(['debug' => true] + $this->to($this->receiver($answer)->url()))->track(['event' => 'E']));
        }
        self::assertLessThan(25, microtime(true) - $began);
    }

    public function testStatusesAreNotHeardWithoutDebug(): void
    {
        $receiver = $this->receiver(['status' => 401]);
        self::assertTrue($this->analytics($this->to($receiver->url()))->track(['event' => 'One']));
        $receiver->waitForCalls(1);
        self::assertSame([], $this->heard);
    }

    public function testAServerThatDoesNotAcceptCostsTheTimeoutOnce(): void
    {
        // A full backlog: the kernel neither accepts nor refuses.
        $listener = stream_socket_server('tcp://127.0.0.1:0', $n, $r, STREAM_SERVER_BIND | STREAM_SERVER_LISTEN, stream_context_create(['socket' => ['backlog' => 0]]));
        self::assertNotFalse($listener);
        $address = (string) stream_socket_get_name($listener, false);
        $fillers = [];
        for ($i = 0; $i < 8; $i++) {
            $fillers[] = stream_socket_client("tcp://$address", $n, $r, 1, STREAM_CLIENT_ASYNC_CONNECT | STREAM_CLIENT_CONNECT);
        }
        $analytics = $this->analytics(['timeout' => 0.3] + $this->to("http://$address"));
        $began = microtime(true);
        $isTaken = [$analytics->track(['event' => 'One']), $analytics->track(['event' => 'Two']), $analytics->track(['event' => 'Three'])];
        self::assertLessThan(2, microtime(true) - $began);
        self::assertSame([false, true, true], $isTaken);
        self::assertSame(['timed_out'], $this->codes());
        self::assertCount(3, $this->spooled());
        unset($fillers);
    }
}

<?php

declare(strict_types=1);

namespace Millrace\Tests\Consumer;

use Millrace\Tests\Support\Page;

final class FileTest extends ConsumerTestCase
{
    protected function name(): string
    {
        return 'file';
    }

    protected function options(): array
    {
        return ['consumer' => 'file', 'filename' => $this->log()];
    }

    protected function arrived(): array
    {
        return self::callsIn($this->log());
    }

    protected function arrivedCount(): int
    {
        return substr_count((string) file_get_contents($this->log()), "\n");
    }

    public function testTheFileIsForItsUserAlone(): void
    {
        $mask = umask(0);
        $this->started()->track(['event' => 'E']);
        umask($mask);
        self::assertSame(0o600, fileperms($this->log()) & 0o777);
    }

    public function testItsModeCanBeChosen(): void
    {
        $mask = umask(0);
        $this->analytics($this->options() + ['filepermissions' => 0o640])->track(['event' => 'E']);
        umask($mask);
        self::assertSame(0o640, fileperms($this->log()) & 0o777);
    }

    public function testWhatIsRenamedAwayGetsNoMoreAndNothingIsLost(): void
    {
        $analytics = $this->started();
        $analytics->track(['event' => 'First']);
        rename($this->log(), "{$this->folder}/taken");
        $analytics->track(['event' => 'Second']);
        unlink($this->log());
        $analytics->track(['event' => 'Third']);
        self::assertSame(['First'], array_column(self::callsIn("{$this->folder}/taken"), 'event'));
        self::assertSame(['Third'], array_column($this->arrived(), 'event'));
    }

    public function testFiftyWritersLoseNothingWhileTheFileIsTakenAwayUnderThem(): void
    {
        $code = <<<'PHP'
            $analytics = new Millrace\Analytics('wk_test', $options);
            for ($i = 0; $i < 200; $i++) {
                $analytics->track(['userId' => (string) getmypid(), 'event' => 'E', 'properties' => ['i' => $i, 'x' => str_repeat('x', random_int(0, 20_000))]]);
            }
            PHP;
        $script = "{$this->folder}/writer.php";
        file_put_contents($script, '<?php require ' . var_export(dirname(__DIR__, 2) . '/autoload.php', true) . ';'
            . '$options = ' . var_export($this->options(), true) . ";\n$code");
        $writers = [];
        for ($i = 0; $i < 50; $i++) {
            $writers[] = proc_open([PHP_BINARY, $script], [['file', '/dev/null', 'r'], STDERR, STDERR], $pipes);
        }
        $taken = 0;
        do {
            clearstatcache();
            if (is_file($this->log())) {
                rename($this->log(), "{$this->folder}/taken.$taken");
                $taken++;
            }
            usleep(20_000);
            $writers = array_filter($writers, static fn ($writer): bool => is_resource($writer) && proc_get_status($writer)['running']);
        } while ($writers !== []);
        $seen = [];
        foreach (glob("{$this->folder}/{taken.*,analytics.log}", GLOB_BRACE) ?: [] as $file) {
            foreach (self::callsIn($file) as $call) {
                $seen[$call['messageId']] = $call['userId'];
            }
        }
        self::assertCount(10_000, $seen);
        self::assertGreaterThan(1, $taken);
        self::assertSame([200], array_values(array_unique(array_count_values($seen))));
    }

    public function testAFullFileRefusesWithAReasonAndStaysWhole(): void
    {
        $analytics = $this->analytics($this->options() + ['file_max_bytes' => 300]);
        self::assertTrue($analytics->track(['event' => 'One']));
        self::assertFalse($analytics->track(['event' => 'Two']));
        self::assertSame(['file_full'], $this->codes());
        self::assertSame(1, $analytics->dropped());
        self::assertSame(['One'], array_column($this->arrived(), 'event'));
    }

    public function testADiskThatIsFullIsReported(): void
    {
        $analytics = $this->analytics(['consumer' => 'file', 'filename' => '/dev/full'] + $this->options());
        self::assertFalse($analytics->track(['event' => 'One']));
        self::assertSame(['file_failed'], $this->codes());
    }

    public function testASignalWhileAnotherWriterIsInsideCostsNoCall(): void
    {
        $code = <<<'PHP'
            $analytics = new Millrace\Analytics('wk_test', $options);
            $analytics->track(['event' => 'One']);
            pcntl_async_signals(true);
            pcntl_signal(SIGUSR1, function () { echo 'signal '; }, false);
            [$mine, $childs] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
            if (pcntl_fork() === 0) {
                $log = fopen($options['filename'], 'a');
                flock($log, LOCK_EX);
                fwrite($childs, "in\n");
                foreach (range(1, 3) as $ignored) {
                    usleep(200_000);
                    posix_kill(posix_getppid(), SIGUSR1);
                }
                usleep(200_000);
                posix_kill(getmypid(), SIGKILL);
            }
            fgets($mine);
            echo json_encode($analytics->track(['event' => 'Two']));
            PHP;
        self::assertSame([0, 'signal signal signal true'], Page::run($code, $this->options()));
        self::assertSame(['One', 'Two'], array_column($this->arrived(), 'event'));
    }

    public function testAFolderThatIsNotThereIsReportedAndNamed(): void
    {
        $analytics = $this->analytics(['filename' => "{$this->folder}/none/a.log"] + $this->options());
        self::assertFalse($analytics->track(['event' => 'One']));
        self::assertSame('file_failed', $this->heard[0][0]);
        self::assertStringContainsString('/none/a.log', $this->heard[0][1]);
        self::assertStringContainsString('No such file', $this->heard[0][1]);
    }

    public function testTheLogIsReadByPeopleAndProgramsLineByLine(): void
    {
        [, $said] = Page::run('$a = new Millrace\Analytics("wk", $options); $a->page("Home\r\n"); $a->track(["event" => "E"]);', $this->options());
        self::assertSame('', $said);
        $text = (string) file_get_contents($this->log());
        self::assertSame(2, substr_count($text, "\n"));
        self::assertStringEndsWith("}\n", $text);
    }

    private function log(): string
    {
        return "{$this->folder}/analytics.log";
    }
}

<?php

/** What every consumer promises, run by each of the four against a real server or file. */

declare(strict_types=1);

namespace Millrace\Tests\Consumer;

use Millrace\Analytics;
use Millrace\Batch;
use Millrace\Tests\Support\LibraryTestCase;
use Millrace\Tests\Support\Page;
use Millrace\Tests\Support\Until;

abstract class ConsumerTestCase extends LibraryTestCase
{
    abstract protected function name(): string;

    /** @return array<string, mixed> options that lead to where `arrived` looks */
    abstract protected function options(): array;

    /** @return list<array<string, mixed>> every call that came out at the other end */
    abstract protected function arrived(): array;

    abstract protected function arrivedCount(): int;

    protected function manyCalls(): int
    {
        return 100_000;
    }

    public function testEveryKindOfCallArrivesOnceWithItsFields(): void
    {
        $analytics = $this->started();
        self::assertTrue($analytics->identify(['userId' => 'u1', 'traits' => ['plan' => 'pro', 'ünï' => "a\nb\u{2028}😀"]]));
        self::assertTrue($analytics->track(['userId' => 'u1', 'event' => 'Order Completed', 'properties' => ['price' => 19.5]]));
        self::assertTrue($analytics->page(['userId' => 'u1', 'category' => 'Docs', 'name' => 'Home']));
        self::assertTrue($analytics->screen(['userId' => 'u1', 'name' => 'Start']));
        self::assertTrue($analytics->group(['userId' => 'u1', 'groupId' => 'g1', 'traits' => ['employee count' => 3]]));
        self::assertTrue($analytics->alias(['userId' => 'u2', 'previousId' => 'u1', 'integrations' => ['All' => false, 'CRM' => true]]));
        self::assertTrue($analytics->flush());
        $calls = array_column($this->waitFor(6), null, 'type');
        self::assertSame(['alias', 'group', 'identify', 'page', 'screen', 'track'], self::sorted(array_keys($calls)));
        self::assertSame(['plan' => 'pro', 'ünï' => "a\nb\u{2028}😀"], $calls['identify']['traits']);
        self::assertSame(['price' => 19.5], $calls['track']['properties']);
        self::assertSame(['Docs', 'Home'], [$calls['page']['category'], $calls['page']['name']]);
        self::assertSame('Start', $calls['screen']['name']);
        self::assertSame('g1', $calls['group']['groupId']);
        self::assertSame(['u2', 'u1'], [$calls['alias']['userId'], $calls['alias']['previousId']]);
        self::assertSame(['All' => false, 'CRM' => true], $calls['alias']['integrations']);
        foreach ($calls as $call) {
            self::assertSame($this->name(), $call['context']['library']['consumer']);
            self::assertMatchesRegularExpression('/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/', $call['timestamp']);
        }
        self::assertCount(6, array_unique(array_column($calls, 'messageId')));
        self::assertSame([], $this->heard);
    }

    public function testCallsOfLessThanTheLimitArriveAndOthersAreRefusedAlone(): void
    {
        $analytics = $this->started();
        $analytics->track(['userId' => 'u1', 'event' => 'Before']);
        $sample = ['userId' => 'u1', 'event' => 'Edge', 'messageId' => 'm1', 'timestamp' => 0, 'properties' => ['x' => '']];
        $analytics->track($sample);
        $bytes = self::bytesOf($this->name(), $sample);
        $fill = static fn (int $size): array => ['properties' => ['x' => str_repeat('x', $size - $bytes)]] + $sample;
        self::assertTrue($analytics->track($fill(Batch::CALL_BYTES_MAX - 1)));
        self::assertFalse($analytics->track($fill(Batch::CALL_BYTES_MAX)));
        $analytics->track(['userId' => 'u1', 'event' => 'After']);
        $analytics->flush();
        self::assertSame(['After', 'Before', 'Edge', 'Edge'], self::sorted(array_column($this->waitFor(4), 'event')));
        self::assertSame(['call_too_large'], $this->codes());
        self::assertSame(1, $analytics->dropped());
    }

    public function testNoMisuseThrows(): void
    {
        $analytics = $this->started();
        $loop = [];
        $loop['again'] = &$loop;
        $unwritable = new class implements \JsonSerializable {
            public function jsonSerialize(): mixed
            {
                throw new \LogicException('not me');
            }
        };
        $misuses = [
            'invalid_call' => ['track', 'no array'],
            'missing_field' => ['track', ['userId' => 'u1']],
            'invalid_field' => ['identify', ['userId' => ['u1']]],
            'invalid_timestamp' => ['track', ['event' => 'E', 'timestamp' => 'tomorrow']],
            'category_without_name' => ['page', ['category' => 'Docs']],
            'not_encodable' => ['track', ['event' => 'E', 'properties' => ['x' => NAN]]],
        ];
        foreach ($misuses as $code => [$method, $given]) {
            self::assertFalse($analytics->$method($given));
            self::assertSame($code, $this->heard[array_key_last($this->heard)][0]);
        }
        self::assertFalse($analytics->identify(['userId' => 'u1', 'traits' => $loop]));
        self::assertFalse($analytics->identify(['userId' => 'u1', 'traits' => $unwritable]));
        self::assertFalse($analytics->group());
        self::assertFalse($analytics->alias(['userId' => 'u1']));
        self::assertSame(10, $analytics->dropped());
        $analytics->track(['event' => 'Sentinel']);
        $analytics->flush();
        self::assertSame(['Sentinel'], array_column($this->waitFor(1), 'event'));
    }

    public function testWhatCanNeverFitACallCostsThePageNothing(): void
    {
        $code = <<<'PHP'
            $options['error_handler'] = function (string $code) { echo "$code "; };
            Millrace\Client::init('wk_test', $options);
            $twice = ['one' => null, 'two' => null];
            $twice['one'] = &$twice;
            $twice['two'] = &$twice;
            Millrace\Client::track(['userId' => 'u1', 'event' => 'E', 'properties' => $twice]);
            $object = new stdClass();
            $object->one = $object->two = $object;
            Millrace\Client::track(['userId' => 'u1', 'event' => 'E', 'properties' => $object]);
            $huge = str_repeat('é"', 10_000_000);
            Millrace\Client::track(['userId' => 'u1', 'event' => 'E', 'properties' => ['x' => $huge]]);
            Millrace\Client::track(['userId' => 'u1', 'event' => $huge]);
            Millrace\Client::track(['userId' => 'u1', 'event' => 'E', 'messageId' => $huge]);
            Millrace\Client::track(['userId' => 'u1', 'event' => 'Sentinel']);
            PHP;
        $expected = 'call_too_large call_too_large call_too_large call_too_large invalid_field ';
        $options = $this->options() + ['spool' => $this->spool()];
        self::assertSame([0, $expected], Page::run($code, $options, ['memory_limit=64M', 'max_execution_time=20']));
        self::assertSame(['Sentinel'], array_column($this->waitFor(1), 'event'));
    }

    public function testAForkedChildSendsItsOwnCallsAndNotItsParents(): void
    {
        $code = <<<'PHP'
            $analytics = new Millrace\Analytics('wk_test', $options);
            $analytics->track(['userId' => 'u1', 'event' => 'Before']);
            $child = pcntl_fork();
            $analytics->track(['userId' => 'u1', 'event' => $child === 0 ? 'Child' : 'After']);
            if ($child === 0) {
                exit;
            }
            pcntl_waitpid($child, $status);
            PHP;
        self::assertSame([0, ''], Page::run($code, $this->options() + ['spool' => $this->spool()]));
        self::assertSame(['After', 'Before', 'Child'], self::sorted(array_column($this->waitFor(3), 'event')));
    }

    /** @return iterable<string, array{string, list<string>, string}> code after the call, settings, what PHP says */
    public static function endings(): iterable
    {
        yield 'the end of the script' => ['', [], ''];
        yield 'exit' => ['exit(3);', [], ''];
        yield 'a fatal error' => ['function_that_is_not_there();', [], 'Fatal error'];
        yield 'an exception' => ['throw new Exception("boo");', [], 'Fatal error'];
        yield 'the memory limit' => ['$all = []; while (true) { $all[] = str_repeat("x", 100_000); }', ['memory_limit=16M'], 'Allowed memory size'];
        yield 'a call in a later shutdown function' => [
            'register_shutdown_function(fn () => Millrace\Client::track(["userId" => "u1", "event" => "Last"])); exit;', [], '',
        ];
    }

    /**
     * @dataProvider endings
     * @param list<string> $settings
     */
    public function testWhatWaitsIsSentWhenTheScriptEndsBy(string $code, array $settings, string $says): void
    {
        $head = 'Millrace\Client::init("wk_test", $options); Millrace\Client::track(["userId" => "u1", "event" => "Last"]);';
        [, $said] = Page::run($head . $code, $this->options() + ['spool' => $this->spool()], $settings);
        self::assertStringContainsString($says, $said);
        $expected = str_contains($code, 'register_shutdown_function') ? 2 : 1;
        self::assertCount($expected, $this->waitFor($expected));
    }

    public function testAHostThatTurnsEveryWarningIntoAnExceptionSeesNone(): void
    {
        $code = <<<'PHP'
            set_error_handler(function (int $level, string $message, string $file, int $line) {
                echo "WARNED $message\n";
                throw new ErrorException($message, 0, $level, $file, $line);
            });
            $analytics = new Millrace\Analytics('wk_test', $options + ['error_handler' => function () { throw new Exception('handler'); }]);
            $analytics->identify(['userId' => 'u1', 'traits' => []]);
            $analytics->page('Home');
            $analytics->track();
            $analytics->track(['event' => 'Done', 'timestamp' => microtime(true)]);
            $analytics->flush();
            unset($analytics);
            PHP;
        [$status, $said] = Page::run($code, $this->options() + ['spool' => $this->spool()]);
        self::assertSame([0, ''], [$status, $said]);
        self::assertCount(3, $this->waitFor(3));
    }

    public function testUnderDebugACallReturnsWhenItHasArrived(): void
    {
        [, $said] = Page::run(<<<'PHP'
            ini_set('error_log', '');
            $analytics = new Millrace\Analytics('wk_test', $options + ['debug' => true]);
            echo $analytics->track(['userId' => 'u1', 'event' => 'Now']) ? 'arrived' : 'missing';
            posix_kill(getmypid(), 9);
            PHP, $this->options() + ['spool' => $this->spool()]);
        self::assertStringContainsString('arrived', $said);
        self::assertStringContainsString('[millrace] track {"type":"track","userId":"u1","event":"Now"', $said);
        self::assertStringNotContainsString('wk_test', $said);
        self::assertSame(['Now'], array_column($this->arrived(), 'event'));
    }

    public function testTwoInstancesKnowNothingOfEachOther(): void
    {
        $one = $this->started();
        $other = $this->started();
        $one->identify(['userId' => 'u1']);
        $other->track(['event' => 'Elsewhere']);
        $one->track(['event' => 'Here']);
        $one->flush();
        $other->flush();
        $calls = array_column($this->waitFor(3), null, 'event');
        self::assertSame('u1', $calls['Here']['userId']);
        self::assertArrayNotHasKey('userId', $calls['Elsewhere']);
        self::assertNotSame('', $calls['Elsewhere']['anonymousId']);
    }

    public function testMemoryStaysFlatOverManyCalls(): void
    {
        [$status, $said] = Page::run(<<<'PHP'
            $analytics = new Millrace\Analytics('wk_test', $options);
            $count = (int) $options['filename_count'];
            for ($i = 0; $i < $count; $i++) {
                $analytics->track(['userId' => 'u1', 'event' => 'Step', 'properties' => ['i' => $i]]);
                if ($i === intdiv($count, 10)) {
                    $before = memory_get_usage();
                }
            }
            $analytics->flush();
            echo json_encode([memory_get_usage() - $before, memory_get_peak_usage()]);
            PHP, $this->options() + ['spool' => $this->spool(), 'filename_count' => $this->manyCalls()]);
        self::assertSame(0, $status, $said);
        [$grown, $peak] = json_decode($said, true, 512, JSON_THROW_ON_ERROR);
        self::assertLessThan(256 * 1024, $grown);
        self::assertLessThan(8 * 1024 * 1024, $peak);
        $this->waitForCount($this->manyCalls());
    }

    protected function started(): Analytics
    {
        return $this->analytics($this->options());
    }

    protected function waitForCount(int $count): void
    {
        Until::true(fn (): bool => $this->arrivedCount() >= $count, "$count calls", 120);
        self::assertSame($count, $this->arrivedCount());
    }

    /** @return list<array<string, mixed>> */
    protected function waitFor(int $count): array
    {
        Until::true(fn (): bool => count($this->arrived()) >= $count, "$count calls");
        $arrived = $this->arrived();
        self::assertCount($count, $arrived);
        return $arrived;
    }

    /** @param array<string, mixed> $call */
    private static function bytesOf(string $consumer, array $call): int
    {
        $identity = new \Millrace\Identity();
        return strlen((new \Millrace\CallBuilder($consumer, $identity))->build('track', $call));
    }

    /**
     * @param list<mixed> $values
     * @return list<mixed>
     */
    private static function sorted(array $values): array
    {
        sort($values);
        return $values;
    }
}

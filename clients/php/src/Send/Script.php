<?php

/** What send.php does with a command line and a terminal. */

declare(strict_types=1);

namespace Millrace\Send;

use Millrace\Http\Endpoint;
use Millrace\Http\Sender;
use Millrace\OptionError;

final class Script
{
    /**
     * @param resource $out
     * @param resource $error
     * @param \Closure(Endpoint, ?string): Sender $sender given where to send, and whom to trust
     */
    public function __construct(
        private $out,
        private $error,
        private readonly \Closure $sender,
    ) {
    }

    /** @param list<string> $argv without the script's own name */
    public function run(array $argv): ExitCode
    {
        $key = getenv('MILLRACE_WRITE_KEY');
        $arguments = Arguments::parse($argv, $key === false ? null : $key);
        if ($arguments === null) {
            fwrite($this->out, Arguments::USAGE);

            return ExitCode::Done;
        }
        try {
            if (is_string($arguments)) {
                throw new OptionError($arguments);
            }
            $endpoint = Endpoint::resolve($arguments->writeKey, $arguments->host);
        } catch (OptionError $mistake) {
            fwrite($this->error, "send.php: {$mistake->getMessage()}\n" . Arguments::USAGE);

            return ExitCode::Usage;
        }
        $report = $arguments->dryRun
            ? (new Survey($arguments->file, $arguments->batchSize))->report()
            : $this->send($arguments, $endpoint);
        $this->tell($report, $arguments->quiet);

        return $report->code;
    }

    private function send(Arguments $arguments, Endpoint $endpoint): Report
    {
        $attempts = new Attempts(($this->sender)($endpoint, $arguments->caFile));
        $isSeen = !$arguments->quiet && stream_isatty($this->error);
        $progress = new Progress($this->error, $isSeen);

        return (new Run($arguments->file, $arguments->batchSize, $attempts, $progress))->start();
    }

    /** A run that finds another at work is no news to a scheduler that starts one each minute. */
    private function tell(Report $report, bool $isQuiet): void
    {
        if ($isQuiet && in_array($report->code, [ExitCode::Done, ExitCode::Busy], true)) {
            return;
        }
        fwrite($report->isTrouble() ? $this->error : $this->out, "send.php: {$report->line()}\n");
    }
}

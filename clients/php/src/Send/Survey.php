<?php

/** What a run would do, found out without sending, locking, renaming or writing anything. */

declare(strict_types=1);

namespace Millrace\Send;

final class Survey
{
    public function __construct(
        private readonly string $file,
        private readonly int $batchSize,
    ) {
    }

    public function report(): Report
    {
        $logs = new Logs($this->file);
        $calls = $requests = $rejected = 0;
        try {
            $live = $logs->isLiveEmpty() ? [] : [$logs->live];
            foreach ([...$logs->taken(), ...$live] as $path) {
                $log = @fopen($path, 'r');
                if ($log === false) {
                    throw FileTrouble::with("$path cannot be opened");
                }
                $reject = static function (Reject $reject) use (&$rejected): void {
                    $rejected += $reject->line->endsLine ? 1 : 0;
                };
                $offset = $path === $logs->live ? 0 : Journal::of($path)->offset;
                foreach (Batches::of(Lines::from($log, $offset), basename($path), $this->batchSize, $reject) as $batch) {
                    $calls += count($batch->calls);
                    $requests += $batch->calls === [] ? 0 : 1;
                }
                fclose($log);
            }
        } catch (FileTrouble $trouble) {
            return new Report(ExitCode::Files, $trouble->getMessage());
        }
        $would = Report::counted($calls, 'call') . ' would be sent in ' . Report::counted($requests, 'request');
        $would .= $rejected === 0 ? '' : ', ' . Report::counted($rejected, 'line') . ' rejected';

        return new Report($rejected === 0 ? ExitCode::Done : ExitCode::Rejected, $would, isSurvey: true);
    }
}

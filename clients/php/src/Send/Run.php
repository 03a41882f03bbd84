<?php

/** One run of send.php: takes the log away from its writers, sends it, and removes what is settled. */

declare(strict_types=1);

namespace Millrace\Send;

final class Run
{
    private readonly Logs $logs;
    private readonly Rejects $rejects;
    private int $calls = 0;

    public function __construct(
        string $file,
        private readonly int $batchSize,
        private readonly Attempts $attempts,
        private readonly Progress $progress,
    ) {
        $this->logs = new Logs($file);
        $this->rejects = new Rejects("$file.rejects");
    }

    public function start(): Report
    {
        $lock = null;
        try {
            $lock = RunLock::take($this->logs->live);
            if ($lock === null) {
                return new Report(ExitCode::Busy, "another run is sending {$this->logs->live}");
            }

            return $this->sendAll();
        } catch (FileTrouble $trouble) {
            return new Report(ExitCode::Files, $trouble->getMessage(), $this->calls, $this->rejects->count);
        } finally {
            $this->progress->clear();
            $lock?->release();
        }
    }

    /** What earlier runs left goes first; while it cannot be sent, the live log stays one file and grows. */
    private function sendAll(): Report
    {
        foreach ($this->logs->taken() as $log) {
            $verdict = $this->send($log);
            if ($verdict !== null) {
                return $this->kept($verdict);
            }
        }
        $verdict = $this->logs->isLiveEmpty() ? null : $this->send($this->logs->take());
        if ($verdict !== null) {
            return $this->kept($verdict);
        }
        $this->logs->clean();

        return $this->rejects->count === 0
            ? new Report(ExitCode::Done, '', $this->calls)
            : new Report(ExitCode::Rejected, "see {$this->rejects->path}", $this->calls, $this->rejects->count);
    }

    /** `null` once all of it is settled and the log is gone. */
    private function send(string $log): ?Verdict
    {
        $handle = Logs::open($log);
        $journal = Journal::of($log);
        $ofOtherLogs = $this->rejects->count;
        if ($journal->isSaved()) {
            $this->rejects->truncateTo($journal->rejectsBytes, $journal->rejectsInode);
            $this->rejects->count += $journal->rejected;
        } else {
            $journal->save(0, $this->rejects->mark(), 0);
        }
        $reject = fn (Reject $reject) => $this->rejects->add($reject, basename($log));
        $delivery = new Delivery($this->attempts, $reject);
        $size = (int) (fstat($handle)['size'] ?? 0);
        $lines = Lines::from($handle, $journal->offset);
        foreach (Batches::of($lines, basename($log), $this->batchSize, $reject) as $end => $batch) {
            $before = $this->rejects->count;
            $verdict = $delivery->settle($batch->calls);
            if ($verdict !== null) {
                return $verdict;
            }
            $this->calls += count($batch->calls) - ($this->rejects->count - $before);
            $journal->save($end, $this->rejects->mark(), $this->rejects->count - $ofOtherLogs);
            $this->progress->show($log, $end, $size, $this->calls);
        }
        fclose($handle);
        Logs::remove($log);

        return null;
    }

    private function kept(Verdict $verdict): Report
    {
        $code = $verdict->kind === Verdict::TEMPORARY ? ExitCode::Temporary : ExitCode::Refused;
        $message = "the log is kept: {$verdict->message} ({$verdict->code})";

        return new Report($code, $message, $this->calls, $this->rejects->count);
    }
}

<?php

/** How far a log is settled, kept beside it and replaced as a whole, so that a kill at any moment leaves one of two true states. */

declare(strict_types=1);

namespace Millrace\Send;

final class Journal
{
    private const SUFFIX = '.position';

    private function __construct(
        private readonly string $path,
        public readonly int $offset,
        public readonly int $rejectsBytes,
        public readonly int $rejectsInode,
        /** Lines of this log, so that the run that ends it can say so. */
        public readonly int $rejected,
    ) {
    }

    public static function pathOf(string $log): string
    {
        return $log . self::SUFFIX;
    }

    /** What cannot be read counts as no journal: sending from the start repeats message ids, and loses nothing. */
    public static function of(string $log): self
    {
        $path = self::pathOf($log);
        $text = is_file($path) ? file_get_contents($path) : false;
        $saved = $text === false ? null : json_decode($text, true);
        $number = static fn (string $name): int => is_array($saved) && is_int($saved[$name] ?? null) ? $saved[$name] : 0;

        return new self($path, $number('offset'), $number('rejectsBytes'), $number('rejectsInode'), $number('rejected'));
    }

    /** @param array{bytes: int, inode: int} $rejects */
    public function save(int $offset, array $rejects, int $rejected): void
    {
        $text = json_encode([
            'offset' => $offset,
            'rejectsBytes' => $rejects['bytes'],
            'rejectsInode' => $rejects['inode'],
            'rejected' => $rejected,
        ], JSON_THROW_ON_ERROR);
        $next = $this->path . '.next';
        // A full disk is no reason to stop: what is sent again has the same message ids, and only sending makes room.
        if (@file_put_contents($next, "$text\n") === false || !@rename($next, $this->path)) {
            @unlink($next);
        }
    }

    public function isSaved(): bool
    {
        return is_file($this->path);
    }
}

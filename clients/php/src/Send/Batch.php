<?php

// Calls that go in one request, in the order of the log.

declare(strict_types=1);

namespace Millrace\Send;

final class Batch
{
    /** What the collection API takes at least; the envelope counts. */
    public const BYTES_MAX = 500_000;
    private const SENT_AT = '2026-01-01T00:00:00.000Z';

    /** @param list<Call> $calls */
    public function __construct(
        public readonly array $calls,
    ) {
    }

    /** What one call may have, so that it fits into a request of its own. */
    public static function callBytesMax(): int
    {
        return self::BYTES_MAX - self::envelopeBytes() - strlen('"messageId":"",') - 100;
    }

    public static function envelopeBytes(): int
    {
        return strlen(self::envelope('', self::SENT_AT));
    }

    /** Each attempt says when it was made. */
    public function body(\DateTimeImmutable $sentAt): string
    {
        $at = $sentAt->setTimezone(new \DateTimeZone('UTC'))->format('Y-m-d\TH:i:s.v\Z');
        $texts = array_map(static fn (Call $call): string => $call->json, $this->calls);

        return self::envelope(implode(',', $texts), $at);
    }

    /** @return list<self> */
    public function split(int $size): array
    {
        return array_map(static fn (array $calls): self => new self($calls), array_chunk($this->calls, max(1, $size)));
    }

    private static function envelope(string $calls, string $sentAt): string
    {
        return "{\"batch\":[$calls],\"sentAt\":\"$sentAt\"}";
    }
}

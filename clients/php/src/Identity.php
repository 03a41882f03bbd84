<?php

/** Who the latest identify was about: calls that name nobody are about the same user. */

declare(strict_types=1);

namespace Millrace;

final class Identity
{
    /** @var array<string, string> */
    private array $latest = [];

    /**
     * The ids of a call that has none of its own. Where nobody was identified they are new for each such call: one
     * process may serve many visitors, and one id for all would make them one person.
     *
     * @return non-empty-array<string, string>
     */
    public function ids(): array
    {
        return $this->latest === [] ? ['anonymousId' => Uuid::random()] : $this->latest;
    }

    /** @param array<string, mixed> $call one that was taken */
    public function follow(string $type, array $call): void
    {
        if ($type === 'identify') {
            $this->latest = self::idsOf($call);
        } elseif ($type === 'alias' && is_string($call['userId'] ?? null)) {
            $this->latest = ['userId' => $call['userId']] + $this->latest;
        }
    }

    public function forget(): void
    {
        $this->latest = [];
    }

    /**
     * @param array<string, mixed> $call
     * @return array<string, string>
     */
    public static function idsOf(array $call): array
    {
        return array_filter(
            ['userId' => $call['userId'] ?? null, 'anonymousId' => $call['anonymousId'] ?? null],
            'is_string',
        );
    }
}

<?php

/** Makes of what a host gave one complete call as JSON, or says why it is none. */

declare(strict_types=1);

namespace Millrace;

final class CallBuilder
{
    private const FLAGS = JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE
        | JSON_PRESERVE_ZERO_FRACTION;

    /** The server's own limits. */
    private const CHARACTERS_MAX = [
        'messageId' => 100, 'userId' => 512, 'anonymousId' => 512, 'groupId' => 512, 'previousId' => 512,
    ];

    private const TEXTS = [
        'userId' => true, 'anonymousId' => true, 'groupId' => true, 'previousId' => true, 'messageId' => true,
        'event' => true, 'name' => true, 'category' => true,
    ];
    private const MAPS = ['traits' => true, 'properties' => true, 'context' => true, 'integrations' => true];
    private const REQUIRED = ['track' => ['event'], 'group' => ['groupId'], 'alias' => ['userId', 'previousId']];

    /** @var array<string, string> */
    private readonly array $library;

    public function __construct(string $consumer, private readonly Identity $identity)
    {
        $this->library = ['name' => Version::LIBRARY, 'version' => Version::NUMBER, 'consumer' => $consumer];
    }

    /** @throws Refusal */
    public function build(string $type, mixed $given): string
    {
        $call = ['type' => $type] + $this->checked($type, $given);
        $call['type'] = $type;
        if ($type === 'page') {
            $call = self::withRequest($call);
        }
        if ($type !== 'alias' && Identity::idsOf($call) === []) {
            $call += $this->identity->ids();
        }
        $call['context'] = $this->context($call['context'] ?? []);
        $call['timestamp'] = self::timestamp($call['timestamp'] ?? null);
        $call['messageId'] ??= Uuid::random();
        $json = self::encode($type, $call);
        $this->identity->follow($type, $call);
        return $json;
    }

    /** @return array<string, mixed> */
    private function checked(string $type, mixed $given): array
    {
        if (is_string($given) && ($type === 'page' || $type === 'screen')) {
            $given = ['name' => $given];
        }
        if (!is_array($given)) {
            throw new Refusal(ErrorCode::InvalidCall, "$type() takes one associative array, not " . get_debug_type($given) . '.');
        }
        $call = [];
        $copy = new PlainCopy($type);
        foreach ($given as $field => $value) {
            $taken = self::field($type, (string) $field, $value, $copy);
            if ($taken !== null) {
                $call[(string) $field] = $taken;
            }
        }
        foreach (self::REQUIRED[$type] ?? [] as $field) {
            if (!isset($call[$field])) {
                throw new Refusal(ErrorCode::MissingField, "$type() needs the field $field.");
            }
        }
        if (isset($call['category']) && !isset($call['name']) && ($type === 'page' || $type === 'screen')) {
            throw new Refusal(ErrorCode::CategoryWithoutName, "$type() takes a category only together with a name.");
        }
        return $call;
    }

    /** One field as it is sent; null where it is as good as absent. */
    private static function field(string $type, string $field, mixed $value, PlainCopy $copy): mixed
    {
        if ($value === null) {
            return null;
        }
        if (isset(self::TEXTS[$field])) {
            return $copy->of(self::text($type, $field, $value));
        }
        if (isset(self::MAPS[$field])) {
            self::refuseUnlessMap($type, $field, $value);
        }
        return $copy->of($value);
    }

    private static function text(string $type, string $field, mixed $value): ?string
    {
        if (!is_string($value) && !is_int($value) && !is_float($value) && !$value instanceof \Stringable) {
            throw new Refusal(ErrorCode::InvalidField, "The field $field of $type() is a string, not " . get_debug_type($value) . '.');
        }
        $text = (string) $value;
        $charactersMax = self::CHARACTERS_MAX[$field] ?? null;
        if ($charactersMax !== null && self::isLonger($text, $charactersMax)) {
            throw new Refusal(ErrorCode::InvalidField, "The field $field of $type() has at most $charactersMax characters.");
        }
        return $text === '' ? null : $text;
    }

    /** Characters are counted as the server does, in UTF-16; none has more than three bytes. */
    private static function isLonger(string $text, int $charactersMax): bool
    {
        if (strlen($text) <= $charactersMax || strlen($text) > 3 * $charactersMax) {
            return strlen($text) > $charactersMax;
        }
        return strlen((string) preg_replace(['/[\x80-\xbf]/', '/[\xf0-\xff]/'], ['', 'xx'], $text)) > $charactersMax;
    }

    private static function refuseUnlessMap(string $type, string $field, mixed $value): void
    {
        $isMap = is_array($value)
            ? $value === [] || !array_is_list($value)
            : is_object($value) && !$value instanceof \DateTimeInterface;
        if (!$isMap) {
            $found = is_array($value) ? 'a list' : get_debug_type($value);
            throw new Refusal(ErrorCode::InvalidField, "The field $field of $type() is an associative array, not $found.");
        }
    }

    /**
     * @param array<string, mixed> $call
     * @return array<string, mixed>
     */
    private static function withRequest(array $call): array
    {
        $properties = $call['properties'] ?? [];
        if ($properties instanceof \stdClass) {
            $properties = (array) $properties;
        }
        if (is_array($properties)) {
            $known = ServedRequest::properties($_SERVER);
            // PHP does not know the title of the page it is making: its name is the nearest thing to it.
            if ($known !== [] && is_string($call['name'] ?? null)) {
                $known['title'] = $call['name'];
            }
            $call['properties'] = $properties + $known;
        }
        return $call;
    }

    /** @return array<mixed> */
    private function context(mixed $given): array
    {
        return (is_array($given) ? $given : get_object_vars((object) $given)) + ['library' => $this->library];
    }

    private static function timestamp(mixed $given): string
    {
        // Stamped here and not on receipt: a call may wait in a log file or spool for hours.
        $read = Timestamp::read($given ?? microtime(true));
        if ($read === null) {
            throw new Refusal(
                ErrorCode::InvalidTimestamp,
                'The field timestamp is seconds since 1970, a DateTimeInterface or an ISO 8601 string such as 2026-11-21T09:30:00Z.',
            );
        }
        return $read;
    }

    /** @param array<string, mixed> $call */
    private static function encode(string $type, array $call): string
    {
        foreach (self::MAPS as $field => $isMap) {
            if (($call[$field] ?? null) === []) {
                $call[$field] = new \stdClass();
            }
        }
        try {
            $json = json_encode($call, self::FLAGS, PlainCopy::DEPTH_MAX);
            $reason = json_last_error_msg();
        } catch (\Throwable $error) {
            // An object of the host that writes itself.
            $json = false;
            $reason = $error->getMessage();
        }
        if ($json === false) {
            throw new Refusal(ErrorCode::NotEncodable, "This $type() cannot be written as JSON: $reason.");
        }
        $bytes = strlen($json);
        if ($bytes >= Batch::CALL_BYTES_MAX) {
            throw Refusal::tooLarge($type, (string) $bytes);
        }
        return $json;
    }
}

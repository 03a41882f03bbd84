<?php

/** Makes of what a host gave one complete call as JSON, or says why it is none. */

declare(strict_types=1);

namespace Millrace;

final class CallBuilder
{
    private const FLAGS = JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE
        | JSON_PRESERVE_ZERO_FRACTION;

    /** The server's own limit. */
    private const DEPTH_MAX = 64;
    private const MESSAGE_ID_CHARACTERS_MAX = 100;

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
        foreach ($given as $field => $value) {
            $taken = self::field($type, (string) $field, $value);
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
    private static function field(string $type, string $field, mixed $value): mixed
    {
        if ($value === null) {
            return null;
        }
        if (isset(self::TEXTS[$field])) {
            return self::text($type, $field, $value);
        }
        return isset(self::MAPS[$field]) ? self::map($type, $field, $value) : self::plain($value);
    }

    private static function text(string $type, string $field, mixed $value): ?string
    {
        if (!is_string($value) && !is_int($value) && !is_float($value) && !$value instanceof \Stringable) {
            throw new Refusal(ErrorCode::InvalidField, "The field $field of $type() is a string, not " . get_debug_type($value) . '.');
        }
        $text = (string) $value;
        // Characters are counted as the server does, in UTF-16; more bytes than three a character cannot fit.
        if ($field === 'messageId' && self::isLonger($text, self::MESSAGE_ID_CHARACTERS_MAX)) {
            throw new Refusal(ErrorCode::InvalidField, 'The field messageId has at most 100 characters.');
        }
        return $text === '' ? null : $text;
    }

    private static function isLonger(string $text, int $charactersMax): bool
    {
        return strlen($text) > $charactersMax && strlen((string) preg_replace('/[\x80-\xbf]/', '', $text)) > $charactersMax;
    }

    /** @return array<mixed>|object */
    private static function map(string $type, string $field, mixed $value): array|object
    {
        if (is_object($value)) {
            return $value;
        }
        if (!is_array($value) || ($value !== [] && array_is_list($value))) {
            $found = is_array($value) ? 'a list' : get_debug_type($value);
            throw new Refusal(ErrorCode::InvalidField, "The field $field of $type() is an associative array, not $found.");
        }
        /** @var array<mixed> */
        return self::plain($value);
    }

    /** PHP's own JSON for a date is an object of three parts that nobody downstream understands. */
    private static function plain(mixed $value, int $depth = 0): mixed
    {
        if ($value instanceof \DateTimeInterface) {
            return Timestamp::format($value);
        }
        if (!is_array($value) || $depth > self::DEPTH_MAX) {
            return $value;
        }
        // A new array, because the host's may hold references: to write into it would change the host's variables.
        $plain = [];
        foreach ($value as $key => $inner) {
            $plain[$key] = is_array($inner) || is_object($inner) ? self::plain($inner, $depth + 1) : $inner;
        }
        return $plain;
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
            $json = json_encode($call, self::FLAGS, self::DEPTH_MAX);
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
            throw new Refusal(ErrorCode::CallTooLarge, "This $type() has $bytes bytes; a call must stay below " . Batch::CALL_BYTES_MAX . '.');
        }
        return $json;
    }
}

<?php

/** The codes that `error_handler` hears, as strings. They are a promise: none is renamed, none changes its meaning. */

declare(strict_types=1);

namespace Millrace;

enum ErrorCode: string
{
    // The call was not taken, because it is not one. Each of these costs that one call.
    case InvalidCall = 'invalid_call';
    case MissingField = 'missing_field';
    case InvalidField = 'invalid_field';
    case InvalidTimestamp = 'invalid_timestamp';
    case CategoryWithoutName = 'category_without_name';
    case NotEncodable = 'not_encodable';
    case CallTooLarge = 'call_too_large';

    // There was no room for it.
    case QueueFull = 'queue_full';
    case FileFull = 'file_full';

    // Sending failed. The calls are kept in the spool, unless `calls_dropped` says otherwise.
    case ConnectionFailed = 'connection_failed';
    case TimedOut = 'timed_out';
    case ProcessFailed = 'process_failed';

    // Only with debug on: what the server answered.
    case ServerUnavailable = 'server_unavailable';
    case ServerMisdirected = 'server_misdirected';
    case CallsRejected = 'calls_rejected';

    // Lost, and how many.
    case CallsDropped = 'calls_dropped';
    case FileFailed = 'file_failed';

    // The library was misused, or failed, in a way that has no code of its own.
    case UnknownOption = 'unknown_option';
    case Unexpected = 'unexpected';
}

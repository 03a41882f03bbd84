<?php

/**
 * A receiver in a process of its own: writes every request to a file, one JSON object per line, and answers as a
 * plan says. Prints its port. Ends with its standard input.
 *
 * Arguments: file for requests, plan, certificate or nothing. A plan is a JSON list of answers, the last of which
 * stays: {"status": 200, "headers": [], "body": "", "delayMs": 0}; status 0 closes the connection without an answer.
 */

declare(strict_types=1);

[, $record, $plan, $certificate] = $argv + ['', '', '[]', ''];
$answers = json_decode($plan, true) ?: [[]];
$context = stream_context_create(
    ['socket' => ['backlog' => 4_096]] + ($certificate === '' ? [] : ['ssl' => ['local_cert' => $certificate]]),
);
$listener = stream_socket_server('tcp://127.0.0.1:0', $number, $reason, STREAM_SERVER_BIND | STREAM_SERVER_LISTEN, $context);
if ($listener === false) {
    throw new RuntimeException($reason);
}
fwrite(STDOUT, explode(':', (string) stream_socket_get_name($listener, false))[1] . "\n");
stream_set_blocking(STDIN, false);

$log = fopen($record, 'ab');
$streams = [];
$buffers = [];
$due = [];

$close = static function (int $id) use (&$streams, &$buffers): void {
    fclose($streams[$id]);
    unset($streams[$id], $buffers[$id]);
};

$answer = static function (int $id, array $plan) use (&$streams, $close): void {
    if (!isset($streams[$id])) {
        return;
    }
    $status = $plan['status'] ?? 200;
    if ($status === 0) {
        $close($id);
        return;
    }
    $body = $plan['body'] ?? '{"success":true}';
    $head = ["HTTP/1.1 $status Planned", 'Content-Length: ' . strlen($body), ...($plan['headers'] ?? [])];
    @fwrite($streams[$id], implode("\r\n", $head) . "\r\n\r\n" . $body);
};

while (true) {
    $read = [$listener, STDIN, ...array_values($streams)];
    $none = null;
    $wait = $due === [] ? 1_000_000 : 2_000;
    if (@stream_select($read, $none, $none, 0, $wait) === false) {
        break;
    }
    foreach ($due as $key => [$at, $id, $plan]) {
        if (hrtime(true) >= $at) {
            unset($due[$key]);
            $answer($id, $plan);
        }
    }
    foreach ($read as $stream) {
        if ($stream === STDIN) {
            if (fread(STDIN, 1) === '' && feof(STDIN)) {
                exit(0);
            }
            continue;
        }
        if ($stream === $listener) {
            $accepted = @stream_socket_accept($listener, 0);
            if ($accepted === false) {
                continue;
            }
            if ($certificate !== '' && @stream_socket_enable_crypto($accepted, true, STREAM_CRYPTO_METHOD_TLS_SERVER) !== true) {
                fclose($accepted);
                continue;
            }
            stream_set_blocking($accepted, false);
            $streams[(int) $accepted] = $accepted;
            $buffers[(int) $accepted] = '';
            continue;
        }
        $id = (int) $stream;
        while (is_string($part = @fread($stream, 65_536)) && $part !== '') {
            $buffers[$id] .= $part;
        }
        while (isset($buffers[$id]) && preg_match('/^(\S+) (\S+) HTTP\/1\.1\r\n(.*?)\r\n\r\n/s', $buffers[$id], $found) === 1) {
            preg_match('/^content-length: (\d+)/mi', $found[3], $length);
            $whole = strlen($found[0]) + (int) ($length[1] ?? 0);
            if (strlen($buffers[$id]) < $whole) {
                break;
            }
            $body = substr($buffers[$id], strlen($found[0]), $whole - strlen($found[0]));
            $buffers[$id] = substr($buffers[$id], $whole);
            $isPacked = preg_match('/^content-encoding: gzip/mi', $found[3]) === 1;
            $headers = [];
            foreach (explode("\r\n", $found[3]) as $line) {
                [$name, $value] = explode(': ', $line, 2) + ['', ''];
                $headers[strtolower($name)] = $value;
            }
            fwrite($log, json_encode([
                'connection' => $id, 'method' => $found[1], 'path' => $found[2], 'headers' => $headers, 'bytes' => strlen($body),
                'body' => $isPacked ? gzdecode($body) : $body,
            ], JSON_THROW_ON_ERROR) . "\n");
            $planned = count($answers) > 1 ? array_shift($answers) : $answers[0];
            if (($planned['delayMs'] ?? 0) > 0) {
                $due[] = [hrtime(true) + $planned['delayMs'] * 1_000_000, $id, $planned];
            } else {
                $answer($id, $planned);
            }
        }
        if (isset($streams[$id]) && feof($stream)) {
            $close($id);
        }
    }
}

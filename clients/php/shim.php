<?php

/**
 * Lets code written for the reference library run on this one unchanged: require this file in place of that library,
 * never beside it. Nothing loads it by itself.
 */

declare(strict_types=1);

require_once __DIR__ . '/autoload.php';

foreach (
    [
        'Segment' => Millrace\Client::class,
        'Segment\\Segment' => Millrace\Client::class,
        'Segment\\Client' => Millrace\Analytics::class,
    ] as $theirs => $ours
) {
    if (class_exists($theirs, false)) {
        throw new LogicException("The class $theirs exists already: require this file in place of the library that has it.");
    }
    class_alias($ours, $theirs);
}

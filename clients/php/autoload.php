<?php

/** Loads the classes of this library where Composer does not: one require of this file is enough. */

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Millrace\\') && !str_starts_with($class, 'Millrace\\Tests\\')) {
        $file = __DIR__ . '/src/' . str_replace('\\', '/', substr($class, 9)) . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
});

<?php

declare(strict_types=1);

error_reporting(E_ALL);

require __DIR__ . '/../autoload.php';

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Millrace\\Tests\\')) {
        $file = __DIR__ . '/' . str_replace('\\', '/', substr($class, 15)) . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
});

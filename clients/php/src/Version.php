<?php

/** What this library calls itself: in every call's context and in the User-Agent of every request. */

declare(strict_types=1);

namespace Millrace;

final class Version
{
    public const LIBRARY = 'millrace-php';
    public const NUMBER = '0.1.0';

    private function __construct()
    {
    }
}

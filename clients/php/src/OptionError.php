<?php

/** The one thing this library throws at its host, and only from `init` or a constructor: an option that cannot be meant. */

declare(strict_types=1);

namespace Millrace;

final class OptionError extends \InvalidArgumentException
{
}

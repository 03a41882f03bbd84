<?php

declare(strict_types=1);

return (new PhpCsFixer\Config())
    ->setRiskyAllowed(true)
    ->setUsingCache(false)
    ->setRules([
        '@PER-CS2.0' => true,
        '@PHP81Migration' => true,
        'declare_strict_types' => true,
        'no_unused_imports' => true,
        'ordered_imports' => true,
        'strict_comparison' => true,
        'strict_param' => true,
        'no_superfluous_phpdoc_tags' => ['allow_mixed' => true],
        'void_return' => true,
        'static_lambda' => true,
        'function_declaration' => ['closure_fn_spacing' => 'one'],
        'single_line_empty_body' => false,
    ])
    ->setFinder(PhpCsFixer\Finder::create()->in(__DIR__)->name('*.php'));

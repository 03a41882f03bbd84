#!/usr/bin/env node
// The entry point: hands the command line and the environment to the CLI, and exits with its code.
import { runCli } from './cli/cli.ts'

const code = await runCli({
  args: process.argv.slice(2),
  env: process.env,
  terminal: {
    out: (line) => process.stdout.write(`${line}\n`),
    err: (line) => process.stderr.write(`${line}\n`),
    isTTY: process.stderr.isTTY === true,
    over: (line) => process.stderr.write(`\r\x1b[2K${line}`),
  },
})
// Not `process.exitCode` alone: a client library's stray timer must not keep a finished process.
process.exit(code)

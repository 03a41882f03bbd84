// `npm run fuzz -- audiences [--seed N]`: random histories against the naive evaluator until they differ.
import { spawn } from 'node:child_process'
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string' } },
})
const seed = values.seed ?? process.env['SEED'] ?? String(Date.now() % 1_000_000)
if (positionals.join(' ') !== 'audiences' || !/^[0-9]+$/.test(seed)) {
  process.stderr.write('usage: npm run fuzz -- audiences [--seed N]\n')
  process.exit(2)
}
process.stdout.write(`fuzz: audiences, seed ${seed}; Ctrl-C ends it\n`)
const run = spawn('vitest', ['run', '--project', 'fuzz', 'test/fuzz/audiences'], {
  stdio: 'inherit',
  env: { ...process.env, SEED: seed },
})
run.on('exit', (code) => process.exit(code ?? 1))

// `npm run chaos -- [deliver] [--seed N] [--runs N] [--destinations N]`: the proofs of delivery under faults; short without `deliver`.
import { spawn } from 'node:child_process'
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string' }, runs: { type: 'string' }, destinations: { type: 'string' } },
})
const [part, ...more] = positionals
if ((part !== undefined && part !== 'deliver') || more.length > 0) {
  process.stderr.write(
    'usage: npm run chaos -- [deliver] [--seed N] [--runs N] [--destinations N]\n',
  )
  process.exit(2)
}
const isLong = part === 'deliver'
const seed = values.seed ?? process.env['SEED'] ?? String(Date.now() % 1_000_000)
process.stdout.write(`chaos: the ${isLong ? 'long' : 'short'} form, seed ${seed}\n`)
const run = spawn('vitest', ['run', '--project', 'chaos*'], {
  stdio: 'inherit',
  env: {
    ...process.env,
    CHAOS_FORM: isLong ? 'long' : 'short',
    SEED: seed,
    ...(values.runs === undefined ? {} : { CHAOS_RUNS: values.runs }),
    ...(values.destinations === undefined ? {} : { CHAOS_DESTINATIONS: values.destinations }),
  },
})
run.on('exit', (code) => process.exit(code ?? 1))

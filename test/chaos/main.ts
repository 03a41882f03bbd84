// `npm run chaos -- [deliver] [--seed N] [--runs N]`: the proofs of delivery under faults; short without `deliver`.
import { spawn } from 'node:child_process'
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string' }, runs: { type: 'string' } },
})
const [part, ...more] = positionals
if ((part !== undefined && part !== 'deliver') || more.length > 0) {
  process.stderr.write('usage: npm run chaos -- [deliver] [--seed N] [--runs N]\n')
  process.exit(2)
}
const runs = values.runs ?? (part === 'deliver' ? '200' : '12')
const seed = values.seed ?? String(Date.now() % 1_000_000)
process.stdout.write(`chaos: ${runs} kills, seed ${seed}\n`)
const run = spawn('vitest', ['run', '--project', 'chaos'], {
  stdio: 'inherit',
  env: { ...process.env, CHAOS_RUNS: runs, CHAOS_SEED: seed },
})
run.on('exit', (code) => process.exit(code ?? 1))

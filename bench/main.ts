// `npm run bench -- <name> [--seconds N] [--pairs N]`: runs bench/<name>.ts, which exports `run(span)`.
import { readdirSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { Span } from './pairs.ts'

const runSecondsDefault = 5
const pairsDefault = 5
const runSecondsMin = 2

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: 'string' }, pairs: { type: 'string' } },
})

/** `--seconds` is the time for everything; a fifth of it goes to starting and warming. */
const spanOf = (): Span => {
  const total = values.seconds === undefined ? null : Number(values.seconds)
  const wanted = values.pairs === undefined ? null : Number(values.pairs)
  if (total === null) return { seconds: runSecondsDefault, pairs: wanted ?? pairsDefault }
  const forRuns = total * 0.8
  const fitting = Math.floor(forRuns / (2 * runSecondsMin))
  const pairs = wanted ?? Math.max(1, Math.min(pairsDefault, fitting))
  return { seconds: forRuns / (2 * pairs), pairs, total: forRuns }
}

const [name = ''] = positionals
const names = readdirSync(new URL('.', import.meta.url))
  .filter((file) => /^[a-z]+\.ts$/.test(file) && !['main.ts', 'pairs.ts'].includes(file))
  .map((file) => file.slice(0, -3))
if (!names.includes(name)) {
  console.error(
    `usage: npm run bench -- <name> [--seconds N] [--pairs N]; one of ${names.join(', ')}`,
  )
  process.exit(2)
}
const bench = (await import(`./${name}.ts`)) as { run(span: Span): Promise<unknown> }
await bench.run(spanOf())
// A bench that has something to gate says so.
process.exit(process.exitCode ?? 0)

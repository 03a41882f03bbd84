// The command and the server are killed with -9 while they import, again and again; then lines are counted.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { postgresSource } from '../../src/log/postgres.ts'
import { findPostgres } from '../../src/postgres/embedded.ts'
import { openPool } from '../../src/postgres/pool.ts'
import { type CommandRun, runCommand } from '../support/command.ts'
import { applyFile, countLog, countMetered, totalOf } from '../support/far-end.ts'
import { type MillraceProcess, removeDataDir, startProcess } from '../support/process.ts'
import { seed } from '../support/seed.ts'
import { seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'
import { openPassage } from './passage.ts'
import { aTrack, ndjson } from './rig.ts'

const kills = Number(process.env['IMPORT_KILLS'] ?? 4)
const lines = Number(process.env['IMPORT_LINES'] ?? 50_000)
const brokenEvery = 1_000
const writeKey = 'wk_import_kill'

const folder = await mkdtemp(join(tmpdir(), 'millrace-import-kill-'))
const dataDir = join(folder, 'data')
const passage = await openPassage()
let millrace: MillraceProcess
let command: CommandRun | null = null

afterAll(async () => {
  command?.kill('SIGKILL')
  await command?.ended
  await millrace?.kill9()
  await passage.close()
  await removeDataDir(dataDir)
  await rm(folder, { recursive: true, force: true })
})

const start = async () => {
  millrace = await startProcess({ dataDir, time: 'running' })
  passage.to(millrace.adminUrl)
}

const path = join(folder, 'calls.ndjson')

const run = () => {
  command = runCommand(
    [
      'import',
      path,
      '--write-key',
      writeKey,
      '--admin-url',
      passage.url,
      '--admin-token',
      millrace.token,
    ],
    {},
  )
}

type Shown = { readonly accepted: number; readonly rejected: number; readonly state: string }

const shown = async (): Promise<Shown | undefined> => {
  const response = await fetch(`${millrace.adminUrl}/admin/v1/imports`, {
    headers: { authorization: `Bearer ${millrace.token}` },
  })
  const { imports } = (await response.json()) as { readonly imports: readonly Shown[] }
  return imports[0]
}

const isBroken = (n: number) => n % brokenEvery === 7

test(`every line is imported once, over ${kills} kills of command and server (SEED=${seed})`, async () => {
  const random = seeded(seed)
  const calls = Array.from({ length: lines }, (_, n) => {
    if (isBroken(n)) return `broken ${n}`
    return aTrack(n % 5_000, {
      properties: { n },
      ...(n % 2 === 0 ? { messageId: `own ${n}` } : {}),
    })
  })
  await writeFile(path, ndjson(...calls))
  await start()
  await applyFile(millrace, {
    workspaces: [{ name: 'shop', sources: [{ name: 'past', class: 'server', writeKey }] }],
  })
  run()
  for (let kill = 0; kill < kills; kill += 1) {
    const target = Math.floor(((kill + random()) * lines) / (kills + 1))
    await until(
      async () => ((await shown())?.accepted ?? 0) >= target,
      `${target} calls before kill ${kill}:\n${command?.err()}`,
      120_000,
    )
    const whom = (['command', 'server', 'both'] as const)[Math.floor(random() * 3)]
    if (whom !== 'server') {
      command?.kill('SIGKILL')
      await command?.ended
    }
    if (whom !== 'command') {
      await millrace.kill9()
      await start()
    }
    if (whom !== 'server') run()
  }
  expect(await command?.ended, command?.err()).toBe(3)
  const broken = calls.flatMap((_, n) => (isBroken(n) ? [n + 1] : []))
  const accepted = lines - broken.length
  expect(await shown()).toMatchObject({ state: 'finished', accepted, rejected: broken.length })
  const rejects = (await readFile(`${path}.rejected.ndjson`, 'utf8')).trimEnd().split('\n')
  expect(rejects.map((one) => (JSON.parse(one) as { line: number }).line)).toEqual(broken)
  const log = await logNow()
  expect(log.size).toBe(accepted)
  await until(
    async () => totalOf(await countMetered(millrace)) >= accepted,
    'all calls are projected',
    120_000,
  )
  expect(await countMetered(millrace)).toEqual({ 'shop/past': accepted })
}, 600_000)

const logNow = async () => {
  const url = (await findPostgres(dataDir)) ?? ''
  const pool = openPool({ url, connectionsMax: 1, name: 'test' })
  const source = postgresSource({ pool })
  const counts = await countLog(source, 'calls.import')
  await source.close()
  await pool.close()
  return counts
}

// The command and the server are killed with -9 while they import, again and again; then lines are counted.
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Source } from '../../src/log/log.ts'
import { type CommandRun, runCommand } from '../support/command.ts'
import { applyFile, countLog, countMetered, totalOf } from '../support/far-end.ts'
import { ownFolder } from '../support/folder.ts'
import type { MillraceProcess } from '../support/process.ts'
import { seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'
import { openPassage } from './passage.ts'
import { aTrack, ndjson } from './rig.ts'

const brokenEvery = 1_000
const writeKey = 'wk_import_kill'

export type Scene = {
  /** Also after a kill. */
  readonly start: () => Promise<MillraceProcess>
  /** To count in, once all is imported. */
  readonly openLog: () => Promise<Pick<Source, 'bounds' | 'read' | 'close'>>
  readonly seed: number
  readonly kills: number
  readonly lines: number
}

type Shown = { readonly accepted: number; readonly rejected: number; readonly state: string }

const shownBy = async (millrace: MillraceProcess): Promise<Shown | undefined> => {
  const response = await fetch(`${millrace.adminUrl}/admin/v1/imports`, {
    headers: { authorization: `Bearer ${millrace.token}` },
  })
  const { imports } = (await response.json()) as { readonly imports: readonly Shown[] }
  return imports[0]
}

const isBroken = (n: number) => n % brokenEvery === 7

export const killWhileImporting = async (scene: Scene): Promise<void> => {
  const folder = await ownFolder('import-kill')
  const passage = await openPassage()
  const path = join(folder, 'calls.ndjson')
  const running: { command?: CommandRun; millrace?: MillraceProcess } = {}
  const run = (token: string): CommandRun => {
    const admin = ['--admin-url', passage.url, '--admin-token', token]
    running.command = runCommand(['import', path, '--write-key', writeKey, ...admin], {})
    return running.command
  }
  const start = async () => {
    running.millrace = await scene.start()
    passage.to(running.millrace.adminUrl)
    return running.millrace
  }
  try {
    await kill(scene, { path, run, start })
  } finally {
    running.command?.kill('SIGKILL')
    await running.command?.ended
    await passage.close()
    await rm(folder, { recursive: true, force: true })
  }
}

type Acting = {
  readonly path: string
  readonly run: (token: string) => CommandRun
  readonly start: () => Promise<MillraceProcess>
}

const kill = async (scene: Scene, { path, run, start }: Acting): Promise<void> => {
  const { kills, lines } = scene
  const random = seeded(scene.seed)
  const calls = Array.from({ length: lines }, (_, n) => {
    if (isBroken(n)) return `broken ${n}`
    return aTrack(n % 5_000, {
      properties: { n },
      ...(n % 2 === 0 ? { messageId: `own ${n}` } : {}),
    })
  })
  await writeFile(path, ndjson(...calls))
  let millrace = await start()
  await applyFile(millrace, {
    workspaces: [{ name: 'shop', sources: [{ name: 'past', class: 'server', writeKey }] }],
  })
  let command = run(millrace.token)
  for (let done = 0; done < kills; done += 1) {
    const target = Math.floor(((done + random()) * lines) / (kills + 1))
    await until(
      async () => ((await shownBy(millrace))?.accepted ?? 0) >= target,
      `${target} calls before kill ${done}:\n${command.err()}`,
      120_000,
    )
    const whom = (['command', 'server', 'both'] as const)[Math.floor(random() * 3)]
    if (whom !== 'server') {
      command.kill('SIGKILL')
      await command.ended
    }
    if (whom !== 'command') {
      await millrace.kill9()
      millrace = await start()
    }
    if (whom !== 'server') command = run(millrace.token)
  }
  expect(await command.ended, command.err()).toBe(3)
  const broken = calls.flatMap((_, n) => (isBroken(n) ? [n + 1] : []))
  const accepted = lines - broken.length
  expect(await shownBy(millrace)).toMatchObject({
    state: 'finished',
    accepted,
    rejected: broken.length,
  })
  const rejects = (await readFile(`${path}.rejected.ndjson`, 'utf8')).trimEnd().split('\n')
  expect(rejects.map((one) => (JSON.parse(one) as { line: number }).line)).toEqual(broken)
  const log = await scene.openLog()
  const counts = await countLog(log as Source, 'calls.import').finally(() => log.close())
  expect(counts.size).toBe(accepted)
  await until(
    async () => totalOf(await countMetered(millrace)) >= accepted,
    'all calls are projected',
    120_000,
  )
  expect(await countMetered(millrace)).toEqual({ 'shop/past': accepted })
}

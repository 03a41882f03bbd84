// `millrace import -` as a process of its own: what is piped into it, and at what pace.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { startTestAdmin } from '../admin/start.ts'
import { aTrack, importRig, ndjson } from '../import/rig.ts'
import { runCommand } from '../support/command.ts'
import { cloneDatabase } from '../support/database.ts'
import { ownFolder } from '../support/folder.ts'

describe('millrace import', async () => {
  const { pool } = await cloneDatabase()
  const rig = importRig(pool)
  const { url } = await startTestAdmin({ pool, live: rig.live as never, imports: rig.imports })
  const folder = await ownFolder('import-stream')

  const run = async (what: readonly string[], input: Uint8Array | null = null) => {
    const to = ['--write-key', 'wk_web', '--admin-url', url, '--admin-token', 'given-admin-token']
    const startedAt = performance.now()
    const command = runCommand(['import', ...what, ...to], {}, input)
    const code = await command.ended
    const tookMs = performance.now() - startedAt
    return { code, out: command.out(), err: command.err(), tookMs }
  }
  const usersLike = async (prefix: string) =>
    (await rig.bodies())
      .map(({ userId }) => String(userId))
      .filter((id) => id.startsWith(prefix))
      .toSorted()

  test.each([
    ['plain', (bytes: Buffer) => bytes],
    ['gzip', (bytes: Buffer) => gzipSync(bytes)],
  ])('takes what is piped into it, %s', async (how, packed) => {
    const calls = Array.from({ length: 3 }, (_, n) => aTrack(n, { userId: `${how} ${n}` }))
    const ran = await run(['-'], packed(ndjson(...calls)))
    expect(ran, ran.err).toMatchObject({
      code: 0,
      out: 'standard input: 3 imported, 0 rejected\n',
    })
    expect(await usersLike(how)).toEqual([`${how} 0`, `${how} 1`, `${how} 2`])
  })

  test('goes on with a stream of the same name, and refuses another one under it', async () => {
    const calls = Array.from({ length: 12_000 }, (_, n) => aTrack(n, { userId: `named ${n}` }))
    const whole = ndjson(...calls)
    const first = await run(['-', '--name', 'old'], whole)
    expect(first, first.err).toMatchObject({ code: 0 })
    const again = await run(['-', '--name', 'old'], whole)
    expect(again).toMatchObject({
      code: 0,
      out: 'old: was imported before: 12000 imported, 0 rejected\n',
    })
    expect(await usersLike('named')).toHaveLength(12_000)
    const other = await run(['-', '--name', 'old'], ndjson(aTrack(1, { userId: 'named other' })))
    expect(other.code).toBe(1)
    expect(other.err).toContain('old is not what import')
    expect(await usersLike('named')).toHaveLength(12_000)
  })

  test('sends no more lines a second than --pace says', async () => {
    const path = join(folder, 'paced.ndjson')
    const calls = Array.from({ length: 250 }, (_, n) => aTrack(n, { userId: `paced ${n}` }))
    await writeFile(path, ndjson(...calls))
    const ran = await run([path, '--pace', '100/s'])
    expect(ran, ran.err).toMatchObject({ code: 0 })
    // The last fifty are due two seconds after the first.
    expect(ran.tookMs).toBeGreaterThan(2_000)
    expect(await usersLike('paced')).toHaveLength(250)
  })
})

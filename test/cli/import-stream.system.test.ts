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

  test.each([
    ['five lines', 5, 'grown goes on after line 5'],
    ['nothing', 0, 'grown goes on after line 0'],
    ['half a line', 5.5, 'grown goes on within line 6'],
  ])('says so when more comes under a name that was imported: %s first', async (how, n, told) => {
    const name = `${how} grown`
    const lines = Array.from({ length: 20 }, (_, at) => aTrack(at, { userId: `${name} ${at}` }))
    const whole = ndjson(...lines)
    const ends = [0, ...[...whole.keys()].filter((at) => whole[at - 1] === 10)]
    const cut = whole.subarray(0, (ends[Math.floor(n)] ?? 0) + (n % 1 ? 9 : 0))
    const first = await run(['-', '--name', name, '--rejects', join(folder, how)], cut)
    expect(first.code, first.err).toBe(n % 1 ? 3 : 0)
    const all = await run(['-', '--name', name, '--rejects', join(folder, how)], whole)
    expect(all).toMatchObject({ code: 1, out: '' })
    expect(all.err).toContain(told)
    expect(all.err).toContain('--again')
    expect(await usersLike(name)).toHaveLength(Math.floor(n))
    const again = await run(['-', '--name', name, '--again'], whole)
    expect(again, again.err).toMatchObject({ code: 0 })
    expect(new Set(await usersLike(name)).size).toBe(20)
  })

  test.each([
    ['a line feed and more', '\n', 'more'],
    ['a carriage return, a line feed and more', '\r\n', 'more'],
    ['a line feed', '\n', 'none'],
    ['a carriage return and a line feed', '\r\n', 'none'],
  ])('takes a last line without its line feed for whole: %s after it', async (how, feed, more) => {
    const name = `${how} at last`
    const lines = Array.from({ length: 6 }, (_, at) => aTrack(at, { userId: `${name} ${at}` }))
    const first = Buffer.from(
      ndjson(...lines.slice(0, 3))
        .toString()
        .trimEnd(),
    )
    const what = ['-', '--name', name, '--rejects', join(folder, how)]
    expect(await run(what, first)).toMatchObject({ code: 0 })
    const rest = more === 'more' ? ndjson(...lines.slice(3)) : Buffer.of()
    const all = await run(what, Buffer.concat([first, Buffer.from(feed), rest]))
    if (more === 'more') {
      expect(all).toMatchObject({ code: 1, out: '' })
      expect(all.err).toContain(`${name} goes on after line 3`)
    } else
      expect(all).toMatchObject({
        code: 0,
        out: `${name}: was imported before: 3 imported, 0 rejected\n`,
      })
    expect(await usersLike(name)).toHaveLength(3)
  })

  test('says so when more rows come under a name that was imported', async () => {
    const mapping = '{"type":"track","columns":{"id":"userId","event":"event"}}'
    const what = ['-', '--name', 'rows', '--map', mapping]
    const header = 'id,event\n'
    expect(await run(what, Buffer.from(header))).toMatchObject({ code: 0 })
    const whole = Buffer.from(`${header}row 1,Ordered\n`)
    const all = await run(what, whole)
    expect(all).toMatchObject({ code: 1, out: '' })
    expect(all.err).toContain('rows goes on after line 1')
    expect(await run(what, Buffer.from(header))).toMatchObject({
      code: 0,
      out: 'rows: was imported before: 0 imported, 0 rejected\n',
    })
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

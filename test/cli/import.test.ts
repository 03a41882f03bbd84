import { hash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/domain/message.ts'
import { startTestAdmin } from '../admin/start.ts'
import { aTrack, importRig, ndjson } from '../import/rig.ts'
import { cloneDatabase } from '../support/database.ts'
import { ownFolder } from '../support/folder.ts'
import { cliAgainst } from '../support/run-cli.ts'

describe('millrace import', async () => {
  const { pool, url: databaseUrl } = await cloneDatabase()
  const rig = importRig(pool)
  const { url, admin } = await startTestAdmin({
    pool,
    live: rig.live as never,
    imports: rig.imports,
  })
  const run = cliAgainst({ databaseUrl, url })
  const folder = await ownFolder('import')
  const key = ['--write-key', 'wk_web']

  const file = async (name: string, content: string | Buffer) => {
    const path = join(folder, name)
    await writeFile(path, content)
    return path
  }
  const importedSince = async (before: number) => (await rig.bodies()).slice(before)
  const count = async () => (await rig.appended()).length
  const newUsers = async (users: ReadonlySet<string>) =>
    (await rig.bodies())
      .map(({ userId }) => String(userId))
      .filter((id) => users.has(id))
      .toSorted()

  test('takes every line of a file, plain or gzip, and says how many', async () => {
    const calls = Array.from({ length: 5_600 }, (_, n) => aTrack(n))
    const plain = await file('plain.ndjson', ndjson(...calls.slice(0, 5_500)))
    const zipped = await file('zipped', gzipSync(ndjson(...calls.slice(5_500))))
    const ran = await run(['import', plain, zipped, ...key])
    expect(ran).toMatchObject({
      code: 0,
      out: 'plain.ndjson: 5500 imported, 0 rejected\nzipped: 100 imported, 0 rejected',
    })
    const users = (await rig.bodies()).map(({ userId }) => userId)
    expect(new Set(users)).toEqual(new Set(calls.map(({ userId }) => userId)))
    expect(users).toHaveLength(5_600)
  })

  test('imports nothing of the same file a second time, unless told to', async () => {
    const path = await file('once.ndjson', ndjson(aTrack(1, { userId: 'once' })))
    await run(['import', path, ...key])
    const before = await count()
    expect(await run(['import', path, ...key])).toMatchObject({
      code: 0,
      out: 'once.ndjson: was imported before: 1 imported, 0 rejected',
    })
    expect(await count()).toBe(before)
    expect(await run(['import', path, ...key, '--again'])).toMatchObject({ code: 0 })
    expect(await count()).toBe(before + 1)
  })

  test('takes nothing of gzip that was cut short, so that the whole of it comes once', async () => {
    const calls = Array.from({ length: 6_000 }, (_, n) => aTrack(n, { userId: `cut${n}` }))
    const whole = gzipSync(ndjson(...calls))
    const path = await file('cut.ndjson.gz', whole.subarray(0, whole.length - 100))
    const before = await count()
    expect(await run(['import', path, ...key])).toMatchObject({
      code: 2,
      err: expect.stringContaining(
        'cut.ndjson.gz: the gzip data is broken: unexpected end',
      ) as string,
    })
    expect(await count()).toBe(before)
    await writeFile(path, whole)
    expect(await run(['import', path, ...key])).toMatchObject({ code: 0 })
    expect(await count()).toBe(before + 6_000)
  })

  test('reads nothing of a folder that holds a table without a mapping', async () => {
    const mixed = join(folder, 'mixed')
    await mkdir(mixed)
    await writeFile(join(mixed, 'a.ndjson'), ndjson(aTrack(1, { userId: 'mixed' })))
    await writeFile(join(mixed, 'b.csv'), 'id,name\n1,x\n')
    const before = await count()
    expect(await run(['import', mixed, ...key])).toMatchObject({
      code: 2,
      err: expect.stringContaining('b.csv is a table') as string,
    })
    expect(await count()).toBe(before)
  })

  test('a folder may hold tables and calls: the mapping is for the tables', async () => {
    const both = join(folder, 'both')
    await mkdir(both)
    await writeFile(join(both, 'a.ndjson'), ndjson(aTrack(1, { userId: 'of calls' })))
    await writeFile(join(both, 'b.csv'), 'id,event\nof table,Ordered\nof table too,Ordered\n')
    await writeFile(join(both, 'c.log'), ndjson(aTrack(1, { userId: 'of a log' })))
    const mapping = '{"type":"track","columns":{"id":"userId","event":"event"}}'
    const ran = await run(['import', both, ...key, '--map', mapping, '--json'])
    expect(ran).toMatchObject({ code: 0, err: '' })
    const told = ran.lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    // Lines read, the first row of a table included.
    expect(told.map(({ name, lines, accepted }) => [name, lines, accepted])).toEqual([
      ['a.ndjson', 1, 1],
      ['b.csv', 3, 2],
      ['c.log', 1, 1],
    ])
    expect(
      await newUsers(new Set(['of calls', 'of table', 'of table too', 'of a log'])),
    ).toHaveLength(4)
    expect(await run(['import', join(both, 'a.ndjson'), ...key, '--map', mapping])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--map is for csv and tsv') as string,
    })
  })

  test('rejected lines of a table may be mended and imported alone', async () => {
    const columns = 'id,event\n'
    const table = await file(
      'open.csv',
      `${columns}open 1,Ordered\n"open 2,Ordered\nopen 3,Ordered\n`,
    )
    const map = ['--map', '{"type":"track","columns":{"id":"userId","event":"event"}}']
    expect(await run(['import', table, ...key, ...map])).toMatchObject({
      code: 3,
      out: 'open.csv: 2 imported, 1 rejected, 2 without a readable time, so as of now',
    })
    const written = (await readFile(`${table}.rejected.ndjson`, 'utf8')).trimEnd().split('\n')
    expect(written.map((line) => JSON.parse(line) as JsonObject)).toMatchObject([
      { line: 3, code: 'row_invalid', reason: 'a quote is not closed', text: '"open 2,Ordered' },
    ])
  })

  test('writes rejected lines to a file with number and reason, and exits with 3', async () => {
    const long = 'x'.repeat(2_200_000)
    const path = await file(
      'bad.ndjson',
      ndjson(aTrack(1), '{"type":"track"', aTrack(2, { event: '' }), long, aTrack(3)),
    )
    const ran = await run(['import', path, ...key])
    expect(ran).toMatchObject({ code: 3, out: 'bad.ndjson: 2 imported, 3 rejected' })
    expect(ran.err).toContain(`rejected lines, with their reasons: ${path}.rejected.ndjson`)
    const written = (await readFile(`${path}.rejected.ndjson`, 'utf8')).trimEnd().split('\n')
    expect(written.map((line) => JSON.parse(line) as JsonObject)).toMatchObject([
      { file: 'bad.ndjson', line: 2, code: 'invalid_json', text: '{"type":"track"' },
      { line: 3, code: 'event_not_defined', reason: 'a track call needs an "event"' },
      { line: 4, code: 'line_too_long', text: '' },
    ])
  })

  test('goes on where a command died, and writes down what that one was told last', async () => {
    const lines = Array.from({ length: 9 }, (_, n) =>
      n % 3 === 0 ? `broken ${n}` : aTrack(n, { userId: `died ${n}` }),
    )
    const path = await file('died.ndjson', ndjson(...lines))
    const made = await admin('POST', '/admin/v1/imports', {
      writeKey: 'wk_web',
      name: 'died.ndjson',
      digest: hash('sha256', await readFile(path), 'hex'),
      format: 'ndjson',
    })
    expect(made.status).toBe(201)
    let [place, line] = [0, 1]
    for (const part of [lines.slice(0, 2), lines.slice(2, 4), lines.slice(4, 6)]) {
      const bytes = ndjson(...part)
      const found = await rig.now(made.body.id as number)
      await rig.imports.take(found, { place, line, bytes, skipped: 0, isLast: false })
      place += bytes.length
      line += part.length
    }
    // It had written down the first chunk's, and of the second's half a line.
    const rejects = `${path}.rejected.ndjson`
    const about = { import: made.body.id, file: 'died.ndjson', index: 0 }
    await writeFile(
      rejects,
      `${JSON.stringify({ ...about, line: 1 })}\n{"import":${made.body.id},"li`,
    )
    expect(await run(['import', path, ...key])).toMatchObject({
      code: 3,
      out: 'died.ndjson: 6 imported, 3 rejected',
    })
    const users = lines.flatMap((call) =>
      typeof call === 'string' ? [] : [String(call['userId'])],
    )
    expect(await newUsers(new Set(users))).toEqual(users.toSorted())
    const written = (await readFile(rejects, 'utf8')).trimEnd().split('\n')
    expect(written.map((one) => (JSON.parse(one) as JsonObject)['line'])).toEqual([1, 4, 7])
    expect(written[1]).toContain('"text":"broken 3"')
  })

  test('takes a folder in the order of its names, without what is hidden or was rejected', async () => {
    const root = join(folder, 'many')
    await mkdir(join(root, 'b'), { recursive: true })
    await writeFile(join(root, 'c.ndjson'), ndjson(aTrack(1, { userId: 'in c' })))
    await writeFile(join(root, 'b', 'x.ndjson'), ndjson(aTrack(1, { userId: 'in b' })))
    await writeFile(join(root, '.hidden'), ndjson(aTrack(1, { userId: 'hidden' })))
    await writeFile(
      join(root, 'a.ndjson.rejected.ndjson'),
      ndjson(aTrack(1, { userId: 'rejected' })),
    )
    const ran = await run(['import', root, ...key])
    expect(ran).toMatchObject({
      code: 0,
      out: 'x.ndjson: 1 imported, 0 rejected\nc.ndjson: 1 imported, 0 rejected',
    })
    expect(await newUsers(new Set(['in b', 'in c', 'hidden', 'rejected']))).toEqual([
      'in b',
      'in c',
    ])
  })

  test('takes of a folder what its name says is calls, and names what it leaves out', async () => {
    const root = join(folder, 'sorts')
    await mkdir(root)
    const names = ['a.json', 'b.JSONL', 'c.log.1', 'd.log-20260101.gz', 'e.png', 'readme.txt']
    for (const name of names)
      await writeFile(join(root, name), ndjson(aTrack(1, { userId: `sort ${name}` })))
    const ran = await run(['import', root, ...key])
    expect(ran.code, ran.err).toBe(0)
    const named = ran.err.split('\n').filter((line) => line.includes('is left out'))
    expect(named.map((line) => line.split(' ')[0])).toEqual([
      join(root, 'e.png'),
      join(root, 'readme.txt'),
    ])
    const all = new Set(names.map((name) => `sort ${name}`))
    expect(await newUsers(all)).toEqual(names.slice(0, 4).map((name) => `sort ${name}`))
    expect((await run(['import', root, ...key, '--format', 'ndjson'])).code).toBe(0)
    expect(await newUsers(all)).toHaveLength(6)
    // Who names a file means it.
    const own = await file('own.txt', ndjson(aTrack(1, { userId: 'own' })))
    expect(await run(['import', own, ...key])).toMatchObject({ code: 0 })
  })

  test('says how many calls count as of now, for want of a time that can be read', async () => {
    const times = ['', 'garbage', '2099-01-01T00:00:00Z', '2020-02-03T04:05:06.000Z']
    const calls = times.map((timestamp, n) => aTrack(n, { userId: `time ${n}`, timestamp }))
    const { timestamp: _, ...none } = aTrack(4, { userId: 'time 4' })
    const lines = await file('times.ndjson', ndjson(...calls, none))
    const found = {
      code: 0,
      out: 'times.ndjson: 5 imported, 0 rejected, 4 without a readable time, so as of now',
    }
    expect(await run(['import', lines, ...key])).toMatchObject(found)
    const table = await file('times.csv', 'id,at\n1,\n2,2020-02-03\n')
    const mapping = '{"type":"page","columns":{"id":"userId","at":"timestamp"}}'
    const ran = await run(['import', table, ...key, '--map', mapping, '--json'])
    expect(JSON.parse(ran.out)).toMatchObject({ accepted: 2, untimed: 1 })
  })

  test('makes calls of a table, and refuses a mistaken mapping before a line is read', async () => {
    const table = await file(
      'sales.csv',
      'who,when,what\n"a, b",1997-01-02,3\nc,soon,4\nd,1997-01-03,5\n',
    )
    const mapping = (what: JsonObject) =>
      JSON.stringify({
        type: 'track',
        constants: { event: 'Bought' },
        columns: { who: 'userId', when: 'timestamp', ...what },
      })
    const before = await count()
    const wrong = await run([
      'import',
      table,
      ...key,
      '--map',
      mapping({ what: 'amount', wat: 'userId' }),
    ])
    expect(wrong.code).toBe(2)
    expect(wrong.err).toMatch(/\/mapping\/columns\/what: "amount" is no place in a call/)
    expect(wrong.err).toMatch(
      /\/mapping\/columns\/wat: the file has no column "wat"; it has "who", "when", "what"/,
    )
    expect(await count()).toBe(before)
    const right = mapping({ what: { to: 'properties.amount', type: 'integer' } })
    const ran = await run(['import', table, ...key, '--map', right])
    expect(ran).toMatchObject({ code: 3, out: 'sales.csv: 2 imported, 1 rejected' })
    expect(await readFile(`${table}.rejected.ndjson`, 'utf8')).toMatch(
      /"line":3.*"text":"c,soon,4"/,
    )
    expect(await newUsers(new Set(['a, b', 'c', 'd']))).toEqual(['a, b', 'd'])
  })

  test('judges all and appends nothing in a dry run', async () => {
    const path = await file('dry.ndjson', ndjson(aTrack(1), 'nonsense'))
    const before = await count()
    expect(await run(['import', path, ...key, '--dry-run'])).toMatchObject({
      code: 3,
      out: 'dry.ndjson: 1 would be imported, 1 rejected',
      err: expect.stringContaining('dry.ndjson:2: the line is not JSON in UTF-8 (invalid_json)'),
    })
    expect(await importedSince(before)).toEqual([])
    expect(await run(['import', path, ...key])).toMatchObject({ code: 3 })
    expect(await count()).toBe(before + 1)
  })

  test.each([
    [['import'], 'an argument is missing'],
    [['import', 'nowhere.ndjson'], 'give the source with --write-key'],
    [['import', 'nowhere.ndjson', ...key], 'nowhere.ndjson cannot be read'],
    [['import', '.', ...key, '--pace', 'fast'], '--pace takes a number of calls per second'],
    [['import', '.', ...key, '--format', 'xml'], '--format takes one of ndjson, csv, tsv'],
    [['import', '.', ...key, '--name', 'x'], '--name is for standard input'],
  ])('%j is refused with what to do', async (args, message) => {
    const ran = await run(args)
    expect(ran.code).toBe(2)
    expect(ran.err).toContain(message)
  })

  test('refuses an unknown write key and a table without a mapping', async () => {
    const path = await file('some.ndjson', ndjson(aTrack(1)))
    expect(await run(['import', path, '--write-key', 'wk_none'])).toMatchObject({
      code: 2,
      err: '/writeKey: no source has this write key (source_unknown)',
    })
    const table = await file('bare.csv', 'a\n1\n')
    expect((await run(['import', table, ...key])).err).toContain('say with --map')
  })
})

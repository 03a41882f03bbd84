import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { runCli } from '../../src/cli/cli.ts'
import { endRun, startTestAdmin } from '../admin/start.ts'
import { until } from '../support/until.ts'

const where = { event: { name: 'Order Completed' }, count: { op: 'gte', value: 2 } }
const file = (webhooks: readonly object[]) => ({
  workspaces: [
    {
      name: 'shop',
      sources: [{ name: 'web', class: 'server', writeKey: 'wk_shop' }],
      destinations: [{ name: 'Webhooks', sources: ['web'], webhooks }],
    },
  ],
})

describe('the commands that configure a running Millrace', async () => {
  const { url, databaseUrl, pool } = await startTestAdmin()
  let directory = ''
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'millrace-cli-'))
  })
  afterAll(() => rm(directory, { recursive: true }))

  const run = async (args: readonly string[], env: Record<string, string> = {}) => {
    const [out, err]: [string[], string[]] = [[], []]
    const terminal = {
      out: (line: string) => void out.push(line),
      err: (line: string) => void err.push(line),
      isTTY: false,
    }
    const own = {
      MILLRACE_DATABASE_URL: databaseUrl,
      MILLRACE_ADMIN_PORT: new URL(url).port,
      MILLRACE_ADMIN_TOKEN: 'given-admin-token',
    }
    const code = await runCli({ args, env: { ...own, ...env }, terminal })
    return { code, out: out.join('\n'), err: err.join('\n') }
  }
  const write = async (name: string, content: string) => {
    const path = join(directory, name)
    await writeFile(path, content)
    return path
  }

  test('apply shows the difference, saves it, and finds nothing to do the second time', async () => {
    const hook = { url: 'http://127.0.0.1:9/hook', headers: { Authorization: 'Bearer t0p' } }
    const path = await write('shop.yaml', stringify(file([hook])))
    const dry = await run(['apply', path, '--dry-run'])
    expect(dry).toMatchObject({ code: 0, err: '' })
    expect(dry.out).toContain('3 created, 0 changed, 0 unchanged (dry run: nothing was saved)')
    expect((await run(['source', 'list'])).out).toBe('ID  NAME  CLASS  WRITE KEY  ENABLED')
    const applied = await run(['apply', path])
    expect(applied.out).toContain('+ destination shop / Webhooks')
    expect(applied.out).toMatch(/secret key, shown this once: sk_/)
    expect(applied.out).not.toContain('t0p')
    expect((await run(['apply', path])).out).toBe('0 created, 0 changed, 3 unchanged')
    const json = await write('shop.json', JSON.stringify(file([{ url: 'http://127.0.0.1:9/new' }])))
    const changed = await run(['apply', json])
    expect(changed.out).toContain('~ destination shop / Webhooks\n    webhooks: ')
    expect(changed.out).toContain('0 created, 1 changed, 2 unchanged')
  })

  test('a refused file names every problem, answers 2 and changes nothing', async () => {
    const hooks = Array.from({ length: 6 }, () => ({ url: 'nonsense' }))
    const refused = await run(['apply', await write('bad.json', JSON.stringify(file(hooks)))])
    expect(refused.code).toBe(2)
    expect(refused.err.split('\n')).toHaveLength(7)
    expect(refused.err).toContain(
      '/workspaces/0/destinations/0/webhooks: a webhook destination takes at most 5 URLs, this one has 6 (webhooks_too_many)',
    )
    expect(await run(['apply', await write('broken.json', '{')])).toMatchObject({ code: 2 })
    expect((await run(['apply', '/nowhere/at/all'])).err).toContain('cannot be read')
    expect((await run(['destination', 'list'])).out).toContain('http://127.0.0.1:9/new')
  })

  test('a source is added with its keys shown, and listed', async () => {
    const added = await run(['source', 'add', 'app', '--class', 'mobile', '--write-key', 'wk_app'])
    expect(added.code).toBe(0)
    expect(added.out).toMatch(/write key {3}wk_app\nsecret key {2}sk_\S+ {3}\(shown this once\)/)
    expect((await run(['source', 'list'])).out).toMatch(/app +mobile +wk_app +yes/)
    const again = await run(['source', 'add', 'app', '--class', 'mobile'])
    expect(again).toMatchObject({ code: 2, err: expect.stringContaining('(name_taken)') })
  })

  test('a destination is added with URLs, headers and sources', async () => {
    const { sources } = JSON.parse((await run(['source', 'list', '--json'])).out)
    const added = await run([
      ...['destination', 'add', 'CRM', '--source', 'app', '--source', 'web'],
      ...['--webhook', 'http://127.0.0.1:9/a', '--webhook', 'http://127.0.0.1:9/b'],
      ...['--header', 'X-Team: growth', '--shared-secret', 'hush', '--no-historical', '--json'],
    ])
    expect(added.code).toBe(0)
    expect(JSON.parse(added.out)).toMatchObject({
      name: 'CRM',
      signed: true,
      historical: false,
      sourceIds: sources.map(({ id }: { id: number }) => id),
      webhooks: [
        { url: 'http://127.0.0.1:9/a', headers: { 'X-Team': 'growth' } },
        { url: 'http://127.0.0.1:9/b', headers: { 'X-Team': 'growth' } },
      ],
    })
    expect((await run(['destination', 'list'])).out).toMatch(/CRM +yes +yes +web,app +http/)
    expect(await run(['destination', 'add', 'None'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('(webhooks_missing)'),
    })
    const unknown = ['destination', 'add', 'X', '--webhook', 'http://a.test', '--source', 'nope']
    expect((await run(unknown)).err).toBe('there is no source named "nope"')
  })

  test('an audience is added from a file, shown and synced', async () => {
    const path = await write('where.json', JSON.stringify(where))
    const added = await run([
      ...['audience', 'add', 'Big Spenders', '--where', path],
      ...['--destination', 'CRM', '--sync-every', '1h'],
    ])
    expect(added).toMatchObject({ code: 0, err: '' })
    expect((await run(['audience', 'list'])).out).toMatch(
      /Big Spenders +big_spenders +backfilling +0 +0 +1h/,
    )
    const shown = await run(['audience', 'show', 'Big Spenders', '--json'])
    expect(JSON.parse(shown.out)).toMatchObject({ key: 'big_spenders', where })
    for (const [args, state, code] of [
      [['sync', 'Big Spenders'], 'finished', 0],
      [['sync', '--all'], 'failed', 1],
    ] as const) {
      const open = "select id::int from sync_run where state = 'requested'"
      const synced = run(args)
      await until(async () => (await pool.query(open)).rows.length === 1)
      const [{ id }] = (await pool.query<{ id: number }>(open)).rows as [{ id: number }]
      await endRun(pool, id, { state, reason: 'a test' })
      expect(await synced).toMatchObject({
        code,
        out: expect.stringMatching(`state +${state}\nmessages +0\nreason +a test`),
      })
    }
    expect((await run(['sync'])).code).toBe(2)
    expect((await run(['sync', 'Nobody'])).err).toBe('there is no audience named "Nobody"')
  })

  test('without a token the local database is enough, and no token stays behind', async () => {
    const count = async () => (await pool.query('select name from admin_token order by id')).rows
    const before = await count()
    const listed = await run(['source', 'list'], { MILLRACE_ADMIN_TOKEN: '' })
    expect(listed).toMatchObject({ code: 0, out: expect.stringContaining('wk_shop') })
    expect(await count()).toEqual(before)
  })

  test('a Millrace on another data directory is named, and none is made for the command', async () => {
    const dataDir = join(directory, 'nowhere')
    const env = {
      MILLRACE_ADMIN_TOKEN: '',
      MILLRACE_DATABASE_URL: '',
      MILLRACE_DATA_DIR: dataDir,
    }
    expect(await run(['source', 'list'], env)).toEqual({
      code: 2,
      out: '',
      err: `the Millrace at ${url} does not run on ${dataDir}: set MILLRACE_DATA_DIR to its data directory, or give its token with --admin-token or MILLRACE_ADMIN_TOKEN`,
    })
    expect(existsSync(dataDir)).toBe(false)
  })

  test('where several workspaces could be meant, the option that decides is named', async () => {
    const path = await write('two.json', JSON.stringify({ workspaces: [{ name: 'second' }] }))
    expect((await run(['apply', path])).code).toBe(0)
    expect(await run(['source', 'add', 'app', '--class', 'mobile'])).toMatchObject({
      code: 2,
      err: 'there are 2 workspaces: name one with --workspace NAME',
    })
  })

  test('a wrong token, an absent one for a far Millrace, and nobody there are told apart', async () => {
    const list = ['source', 'list']
    expect(await run([...list, '--admin-token', 'wrong'])).toMatchObject({
      code: 1,
      err: 'the token is not known',
    })
    expect(await run([...list, '--admin-url', url], { MILLRACE_ADMIN_TOKEN: '' })).toMatchObject({
      code: 2,
      err: expect.stringContaining('--admin-token'),
    })
    expect(await run([...list, '--admin-url', 'http://127.0.0.1:1'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('no Millrace answers at http://127.0.0.1:1'),
    })
    expect((await run(['source', 'remove', 'x'])).code).toBe(2)
  })
})

import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { endRun, startTestAdmin } from '../admin/start.ts'
import { ownFolder } from '../support/folder.ts'
import { cliAgainst } from '../support/run-cli.ts'
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
    directory = await ownFolder('cli')
  })

  const run = cliAgainst({ databaseUrl, url })
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
        { url: 'http://127.0.0.1:9/a', headers: { 'X-Team': '(hidden)' } },
        { url: 'http://127.0.0.1:9/b', headers: { 'X-Team': '(hidden)' } },
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

  test('a source is set from options and files, shown, and a setting taken back', async () => {
    const plan = { mode: 'report', events: { 'Order Completed': { required: ['Order Total'] } } }
    const path = await write('plan.yaml', stringify(plan))
    const set = (...options: string[]) => run(['source', 'set', 'app', ...options])
    const done = await set(
      ...['--ip-policy', 'truncate', '--trust-client-ip', 'yes', '--tracking-plan', path],
      ...['--allowed-origin', 'https://a.test', '--allowed-origin', 'http://b.test:81'],
      ...['--call-bytes', '65536', '--calls-per-second', '50', '--enabled', 'no'],
    )
    expect(done).toMatchObject({ code: 0, err: '' })
    const shown = await run(['source', 'show', 'app'])
    expect(shown.out).toBe(done.out)
    for (const row of [
      /^enabled +no$/m,
      /^ip policy +truncate$/m,
      /^trust client ip +yes$/m,
      /^allowed origins +https:..a.test http:..b.test:81$/m,
      /^call bytes +65536$/m,
      /^body bytes +as the installation$/m,
      /^calls per second +50$/m,
      /^tracking plan +report, 1 events$/m,
    ])
      expect(shown.out).toMatch(row)
    const back = await set(
      ...['--ip-policy', 'default', '--allowed-origin', 'default', '--tracking-plan', 'default'],
      ...['--calls-per-second', 'default', '--enabled', 'yes', '--json'],
    )
    expect(JSON.parse(back.out)).toMatchObject({
      ...{ ipPolicy: 'keep', allowedOrigins: [], trackingPlan: null, callsPerSecondMax: null },
      ...{ trustClientIp: true, callBytesMax: 65_536, enabled: true },
    })
    expect(await set('--ip-policy', 'some')).toMatchObject({
      code: 2,
      err: '/ipPolicy: /ipPolicy must be one of: "keep", "truncate", "drop", null (field_invalid)',
    })
    expect((await set('--call-bytes', 'many')).err).toBe('--call-bytes takes a whole number')
    expect((await set('--trust-client-ip', 'true')).err).toBe(
      '--trust-client-ip takes "yes" or "no"',
    )
    expect((await set()).err).toBe('say what to set')
  })

  test('a destination gets filters from a file or in place, and loses them', async () => {
    const filters = [
      { kind: 'sample', rate: 0.5 },
      { kind: 'block', paths: ['properties.Order Total'] },
    ]
    const path = await write('filters.yaml', stringify(filters))
    const set = (...options: string[]) => run(['destination', 'set', 'CRM', ...options])
    const done = await set('--filters', path, '--historical', 'yes', '--enabled', 'no')
    expect(done.out).toMatch(/^filter +\{"kind":"sample","rate":0.5\}$/m)
    const { destinations } = JSON.parse((await run(['destination', 'list', '--json'])).out)
    expect(destinations.find(({ name }: { name: string }) => name === 'CRM')).toMatchObject({
      filters,
      ...{ historical: true, enabled: false, signed: true },
      webhooks: [{ url: 'http://127.0.0.1:9/a' }, { url: 'http://127.0.0.1:9/b' }],
    })
    const one = await set('--filters', '[{"kind":"drop","if":{"types":["page"]}}]', '--json')
    expect(JSON.parse(one.out).filters).toEqual([{ kind: 'drop', if: { types: ['page'] } }])
    expect(await set('--filters', '[{"kind":"drop"}]')).toMatchObject({
      code: 2,
      err: expect.stringContaining('/filters/0/if: drop needs to say which calls'),
    })
    expect((await set('--filters', 'none', '--enabled', 'yes')).out).not.toContain('filter')
  })

  test('a destination and its URLs are set as to how messages go there', async () => {
    const pem = (name: string) => fileURLToPath(new URL(`../http/tls/${name}`, import.meta.url))
    const hook = ['--webhook', 'https://127.0.0.1:9/tls']
    const added = await run([
      ...[
        'destination',
        'add',
        'TLS',
        ...hook,
        '--header',
        'X-Team: growth',
        '--ca',
        pem('ca.crt'),
      ],
      ...['--client-certificate', pem('client.crt'), '--client-key', pem('client.key')],
      ...['--concurrency', '3', '--rate', '0.5', '--order', 'none', '--payload', 'full'],
      ...[
        '--replay-on-heal',
        'yes',
        '--signatures',
        'standard, next',
        '--shared-secret',
        'generate',
      ],
    ])
    expect(added).toMatchObject({ code: 0, err: '' })
    expect(added.out).toMatch(/^shared secret +whsec_\S{44} {3}\(shown this once\)$/m)
    const about = 'X-Team, 3 at a time, 0.5 a second, own authorities, client certificate'
    for (const { out } of [added, await run(['destination', 'show', 'TLS'])]) {
      expect(out).toContain(`https://127.0.0.1:9/tls   (${about})`)
      expect(out).toMatch(/^signatures +X-Signature, standard, next$/m)
      expect(out).toMatch(/^order +none$/m)
      expect(out).toMatch(/^payload +full$/m)
      expect(out).toMatch(/^replay on heal +yes$/m)
    }
    const set = (...options: string[]) => run(['destination', 'set', 'TLS', ...options])
    expect((await set('--signatures', 'none')).out).toMatch(/^signatures +X-Signature$/m)
    expect((await set(...hook)).out).toMatch(/^url +https:\/\/127.0.0.1:9\/tls$/m)
    for (const [options, err] of [
      [['--signatures', 'md5'], '--signatures takes "none" or some of standard,sha256,next'],
      [['--rate', '5'], '--rate belongs to the URLs given with --webhook'],
      [[...hook, '--rate', 'fast'], '--rate takes a number'],
      [[...hook, '--ca', '/nowhere'], '/nowhere cannot be read'],
      [[...hook, '--client-key', pem('client.key')], 'belong together'],
      [['--order', 'any'], '(field_invalid)'],
    ] as const)
      expect(await set(...options)).toMatchObject({ code: 2, err: expect.stringContaining(err) })
  })

  test('a shared secret is replaced at a time to come, at once, or not after all', async () => {
    const secret = (...options: string[]) => run(['destination', 'secret', 'TLS', ...options])
    const first = await secret('--after', '36h')
    expect(first.out).toMatch(/^shared secret +whsec_/m)
    expect(first.out).toMatch(/^next secret signs from +20\d\d-/m)
    expect((await secret('--cancel')).out).not.toContain('next secret')
    const given = await secret('--shared-secret', 'hush', '--at', '2999-01-01T00:00:00Z')
    expect(given.out).toMatch(/^next secret signs from +2999-01-01T00:00:00.000Z$/m)
    expect(given.out).not.toMatch(/hush|whsec_/)
    expect((await secret('--after', '0s')).out).not.toContain('next secret')
    expect(await secret('--at', 'noon')).toMatchObject({
      code: 2,
      err: expect.stringContaining('(activate_at_invalid)'),
    })
  })

  test('a file that asks for a secret gets it told once', async () => {
    const destinations = [
      { name: 'Told', sharedSecret: 'generate', webhooks: [{ url: 'http://127.0.0.1:9/told' }] },
    ]
    const path = await write(
      'told.json',
      JSON.stringify({ workspaces: [{ name: 'shop', destinations }] }),
    )
    expect((await run(['apply', path])).out).toMatch(/shared secret, shown this once: whsec_/)
    expect((await run(['apply', path])).out).toBe('0 created, 0 changed, 2 unchanged')
  })

  test('a workspace is added, put on a grandfathered plan, and listed', async () => {
    expect((await run(['workspace', 'add', 'lone'])).out).toMatch(/^grandfathered +no$/m)
    const set = await run(['workspace', 'set', 'lone', '--grandfathered', 'yes'])
    expect(set).toMatchObject({ code: 0, out: expect.stringMatching(/^grandfathered +yes$/m) })
    expect((await run(['workspace', 'list'])).out).toMatch(/lone +no +yes/)
    await pool.query("delete from workspace where name = 'lone'")
  })

  test('a computed trait is added from a file, listed and shown', async () => {
    const measure = { event: { name: 'Order Completed' }, count: {} }
    const path = await write('measure.json', JSON.stringify(measure))
    const added = await run([
      ...['trait', 'add', 'Orders', '--measure', path, '--destination', 'CRM'],
      ...['--timezone', 'Europe/Dublin', '--retract-on-delete', 'yes'],
    ])
    expect(added).toMatchObject({ code: 0, err: '' })
    expect((await run(['trait', 'list'])).out).toMatch(/Orders +orders +backfilling +0 +2h30m/)
    const shown = JSON.parse((await run(['trait', 'show', 'Orders', '--json'])).out)
    expect(shown).toMatchObject({ measure, timezone: 'Europe/Dublin', retractOnDelete: true })
    expect((await run(['trait', 'add', 'None'])).err).toContain(
      '--measure: a file, JSON, or the text form',
    )
    await pool.query("delete from audience where name = 'Orders'")
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
    expect((await run(['sync', 'Nobody'])).err).toBe(
      'there is no audience or computed trait named "Nobody"',
    )
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
    expect(await run(['source', 'list'], env)).toMatchObject({
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

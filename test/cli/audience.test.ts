import { afterAll, describe, expect, test } from 'vitest'
import { startTestAdmin } from '../admin/start.ts'
import { aRig, audience, codec, performed, start } from '../project/rig.ts'
import { cloneDatabase } from '../support/database.ts'
import { cliAgainst } from '../support/run-cli.ts'

describe('the commands that say who is in an audience and why', async () => {
  const { pool, url: databaseUrl } = await cloneDatabase()
  const rig = await aRig(pool)
  const running = rig.start()
  afterAll(() => running.stop())
  const log = { source: rig.log.source(), codecs: { call: codec } }
  const { url, admin } = await startTestAdmin({ pool, clock: rig.clock, ...log })
  const run = cliAgainst({ databaseUrl, url })
  const { id: workspaceId } = (await admin('POST', '/admin/v1/workspaces', { name: 'shop' })).body
  const where = performed('gte', 2, '48h')
  const { id } = (await admin('POST', '/admin/v1/audiences', { name: 'Buyers', where })).body
  const measure = { event: { name: 'Ordered', window: { last: '48h' } }, count: {} }
  const trait = (await admin('POST', '/admin/v1/traits', { name: 'Orders', measure })).body
  const orders = audience(trait.id, measure, { kind: 'trait', workspaceId })
  rig.live.replace({ audiences: [audience(id, where, { workspaceId }), orders] })
  await rig.built()
  await rig.send(
    { workspaceId, userId: 'u1' },
    { workspaceId, userId: 'u1' },
    { workspaceId, userId: 'u2' },
    { workspaceId, anonymousId: 'a1' },
  )
  await rig.caughtUp()

  test('explain shows the tree with facts, what it takes, and when it changes', async () => {
    const { code, out } = await run(['audience', 'explain', 'Buyers', 'u1'])
    expect(code).toBe(0)
    expect(out).toMatch(/in it +yes\nchanges +at 2026-01-12T00:00:00\.000Z/)
    expect(out).toContain("yes event('Ordered').within(2 days).count() >= 2")
    expect(out).toContain('count is 2 from 2026-01-08T00:01:00.000Z')
    const later = new Date(start + 3 * 86_400_000).toISOString()
    const then = await run(['audience', 'explain', 'Buyers', 'u1', '--at', later])
    expect(then.out).toMatch(/in it +no/)
    expect(then.out).toContain('it takes 2 more')
    const other = await run(['audience', 'explain', 'Buyers', 'a1', '--anonymous'])
    expect(other.out).toContain('it takes 1 more')
    const json = await run(['audience', 'explain', 'Buyers', 'u2', '--json'])
    expect(JSON.parse(json.out)).toMatchObject({ member: false, where: { takes: '1 more' } })
  })

  test('explain of a computed trait shows the value and what it is made of', async () => {
    const { code, out } = await run(['trait', 'explain', 'Orders', 'u1'])
    expect(code).toBe(0)
    expect(out).toMatch(/value +2\nchanges +at 2026-01-12T00:00:00\.000Z\nrecorded +2\n/)
    expect(out).toContain("event('Ordered').within(2 days).count()\n    count is 2 from 2026-01-08")
    const later = new Date(start + 3 * 86_400_000).toISOString()
    const then = await run(['trait', 'explain', 'Orders', 'u1', '--at', later, '--json'])
    expect(JSON.parse(then.out)).toMatchObject({ value: 0, recorded: 2, changesAt: null })
    expect((await run(['trait', 'explain', 'Orders'])).code).toBe(2)
  })

  test('preview counts a condition, and what an edit would change', async () => {
    const text = "event('Ordered').within(2 days).count() >= 1"
    const found = await run(['audience', 'preview', '--where', text])
    expect(found).toMatchObject({ code: 0, err: '' })
    expect(found.out).toMatch(/members +3 +2 +u[12] u[12]\nof +3 +exact, from 3 users/)
    const edit = await run(['audience', 'preview', 'Buyers', '--where', text])
    expect(edit.out).toMatch(/entering +2 +1 +u2\nleaving +0 +0\n/)
    const less = ['--include-anonymous', 'no']
    const without = await run(['audience', 'preview', 'Buyers', '--where', text, ...less])
    expect(without.out).toMatch(/entering +1 +1 +u2\n/)
  })

  test('versions and sizes are listed, of computed traits too', async () => {
    await admin('PATCH', `/admin/v1/audiences/${id}`, { syncEvery: '1h' })
    await pool.query(
      `insert into audience_size (audience_id, run_id, at, members, anonymous)
       values ($1, 7, '2026-01-01T00:00:00Z', 12, 3)`,
      [id],
    )
    const { out } = await run(['audience', 'versions', 'Buyers'])
    expect(out).toMatch(/\n2 .*environment +syncEvery: "2h30m" → "1h"\n1 .*environment +created$/)
    expect((await run(['audience', 'sizes', 'Buyers'])).out).toMatch(/\n7 +2026.* 12 +3$/)
    const measure = { event: { name: 'Ordered' }, count: {} }
    await admin('POST', '/admin/v1/traits', { name: 'Orders', measure })
    expect((await run(['trait', 'versions', 'Orders'])).out).toMatch(/\n1 .*created$/)
    expect((await run(['trait', 'sizes', 'Orders'])).lines).toHaveLength(1)
  })

  test('what is asked wrongly is refused with what to say', async () => {
    const refused = async (...args: readonly string[]) => {
      const { code, err } = await run(['audience', ...args])
      return [code, err]
    }
    expect(await refused('explain', 'Buyers')).toEqual([
      2,
      'say "explain NAME USER": the audience, and a user id',
    ])
    expect(await refused('explain', 'None', 'u1')).toEqual([1, 'there is no audience named "None"'])
    expect((await refused('explain', 'Buyers', 'u1', '--at', 'soon'))[1]).toContain('ISO 8601')
    expect(await refused('versions')).toEqual([2, 'say "versions NAME"'])
    expect((await refused('preview'))[0]).toBe(2)
    expect((await refused('show', 'Buyers', 'more'))[1]).toContain('"explain"')
    expect((await refused('toString'))[1]).toContain('say "list"')
    expect((await refused('preview', '--where', "event('x'"))[1]).toContain('column')
  })
})

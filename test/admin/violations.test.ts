// What breaks tracking plans, as the admin API and the command line show it.
import { describe, expect, test } from 'vitest'
import { saveViolations } from '../../src/pipeline/violations-store.ts'
import { cliAgainst } from '../support/run-cli.ts'
import { startTestAdmin } from './start.ts'

const now = Date.parse('2026-03-15T12:30:00Z')
const dayMs = 86_400_000

describe('violations of a source', async () => {
  const { admin, viewer, nobody, pool, url, databaseUrl } = await startTestAdmin({
    clock: () => new Date(now),
  })
  await admin('POST', '/admin/v1/workspaces', { name: 'shop' })
  const source = (await admin('POST', '/admin/v1/sources', { name: 'web', class: 'server' })).body
  const other = (await admin('POST', '/admin/v1/sources', { name: 'app', class: 'mobile' })).body
  const count = (daysAgo: number, path: string, calls: number) => {
    const at = now - daysAgo * dayMs
    const day = new Date(at).toISOString().slice(0, 10)
    const sourceId: number = source.id
    return { sourceId, day, event: 'Ordered', path, kind: 'type', calls, firstAt: at, lastAt: at }
  }
  await saveViolations(
    pool,
    [
      count(0, 'properties.price', 3),
      count(0, 'properties.s\u001b[2Jku', 5),
      count(6, 'properties.price', 9),
      count(7, 'properties.price', 1),
      { ...count(0, 'properties.app', 1), sourceId: other.id },
    ],
    1_000,
  )
  const path = `/admin/v1/sources/${source.id}/violations`

  test('a viewer sees those of a week, the newest day first, what most calls broke first', async () => {
    const { status, body } = await viewer('GET', path)
    expect(status).toBe(200)
    expect(body).toEqual({
      since: '2026-03-09',
      violations: [
        expect.objectContaining({ day: '2026-03-15', path: 'properties.s\u001b[2Jku', calls: 5 }),
        {
          day: '2026-03-15',
          event: 'Ordered',
          path: 'properties.price',
          kind: 'type',
          calls: 3,
          firstAt: '2026-03-15T12:30:00.000Z',
          lastAt: '2026-03-15T12:30:00.000Z',
        },
        expect.objectContaining({ day: '2026-03-09', calls: 9 }),
      ],
      more: false,
    })
  })

  test('as many days and rows as are asked for', async () => {
    expect((await viewer('GET', `${path}?days=8`)).body.violations).toHaveLength(4)
    expect((await viewer('GET', `${path}?days=1`)).body.violations).toHaveLength(2)
    const limited = (await viewer('GET', `${path}?limit=2`)).body
    expect([limited.violations.length, limited.more]).toEqual([2, true])
  })

  test('an unknown source is not found, and what is no number of days is refused', async () => {
    expect((await viewer('GET', '/admin/v1/sources/999/violations')).status).toBe(404)
    for (const query of ['days=0', 'days=91', 'days=x', 'day=1', 'limit=0'])
      expect((await viewer('GET', `${path}?${query}`)).status, query).toBe(400)
    expect((await nobody('GET', path)).status).toBe(401)
  })

  const cli = cliAgainst({ databaseUrl, url })
  const run = (...args: readonly string[]) => cli(['violations', ...args])

  test('the command shows them by the name of the source, and nothing a terminal obeys', async () => {
    const { code, lines } = await run('web', '--days', '1')
    expect(code).toBe(0)
    expect(lines).toHaveLength(3)
    expect(lines[0]).toMatch(/^DAY +EVENT +PATH +KIND +CALLS +FIRST +LAST$/)
    expect(lines[1]).toMatch(/^2026-03-15 +Ordered +properties\.s\ufffd\[2Jku +type +5 /)
  })

  test('the command refuses an unknown source and a wrong number of days', async () => {
    expect(await run('nowhere')).toMatchObject({
      code: 1,
      err: expect.stringContaining('no source named "nowhere"'),
    })
    expect(await run('web', '--days', '91')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--days'),
    })
    expect(await run()).toMatchObject({ code: 2 })
  })
})

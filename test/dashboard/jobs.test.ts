// What a card says of the admin API's views; the page itself is tried in Chromium by the suite of clients.
import { describe, expect, test } from 'vitest'
import { durationOf, isOpen } from '../../dashboard/job.js'
import { kinds } from '../../dashboard/jobs.js'
import { startTestAdmin } from '../admin/start.ts'

const names = { sources: new Map([[1, 'web']]), destinations: new Map([[2, 'Webhooks']]) }

const jobOf = (name: string, view: object) => {
  const kind = kinds.find((each) => each.name === name)
  if (!kind) throw new Error(`no kind ${name}`)
  return kind.jobOf(view, names)
}

const replay = {
  ...{ id: 7, destinationId: 2, actor: 'ada', state: 'running', trouble: null, etaSeconds: 90 },
  ...{ since: '2026-01-01T00:00:00.000Z', until: '2026-02-01T00:00:00.000Z', ratePerSecond: 0.5 },
  ...{ total: 4_000, read: 1_000, sent: 800, delivered: 700, waiting: 60, parked: 40, givenUp: 0 },
  ...{ historical: 3, filtered: 0, unsendable: 0, suppressed: 0, duplicate: 0 },
  reasons: null,
  createdAt: '2026-03-01T00:00:00.000Z',
}

describe('a replay', () => {
  test('tells how far it is, and can be paused', () => {
    expect(jobOf('replays', replay)).toMatchObject({
      ...{ key: 'replays/7', title: 'Replay 7 to Webhooks', tone: 'going', share: 0.25 },
      secondsLeft: 90,
      facts: [
        ['Span in UTC', '2026-01-01 00:00 – 2026-02-01 00:00'],
        ['At most', '0.5 a second'],
        ['Read', '1,000'],
        ['Sent', '800'],
        ['Delivered', '700'],
        ['Waiting', '100'],
        ['Withheld', '3'],
      ],
      steps: [
        { label: 'Pause', path: '/admin/v1/replays/7/pause', asks: null },
        { label: 'Cancel', path: '/admin/v1/replays/7/cancel', asks: expect.any(String) },
      ],
    })
  })

  test('of what is dead says what it died of', () => {
    const { facts } = jobOf('replays', { ...replay, reasons: ['expired', 'status_410'] })
    expect(facts).toContainEqual(['Dead by', 'expired, status_410'])
  })

  test('has no share before it knows its length, and all of it where there is nothing', () => {
    expect(jobOf('replays', { ...replay, total: null }).share).toBeNull()
    expect(jobOf('replays', { ...replay, total: 0, read: 0 }).share).toBe(1)
  })

  test.each([
    ['paused', ['Resume', 'Cancel'], true],
    ['draining', ['Cancel'], true],
    ['finished', [], false],
    ['cancelled', [], false],
  ])('%s offers %j', (state, steps, open) => {
    const job = jobOf('replays', { ...replay, state })
    expect(job.steps.map(({ label }) => label)).toEqual(steps)
    expect(isOpen(job)).toBe(open)
    expect(job.secondsLeft).toBeNull()
  })
})

test('an import of unknown length has no share until it is over', () => {
  const view = {
    ...{ id: 1, sourceId: 1, name: 'a.ndjson', actor: 'ada', dryRun: true, state: 'running' },
    ...{ bytes: null, place: 1_500_000, accepted: 10, rejected: 0, filtered: 0, suppressed: 2 },
    ...{ untimed: 3, createdAt: '2026-03-01T00:00:00.000Z' },
  }
  expect(jobOf('imports', view)).toMatchObject({
    ...{ title: 'Dry run 1 of a.ndjson', share: null },
    facts: [
      ['Source', 'web'],
      ['Read', '1.5 MB'],
      ['Accepted', '10'],
      ['Rejected', '0'],
      ['Suppressed', '2'],
      ['Without a time', '3'],
    ],
  })
  expect(jobOf('imports', { ...view, state: 'finished' }).share).toBe(1)
})

test('a rebuild that differs waits for a decision', () => {
  const view = {
    ...{ id: 3, actor: 'ada', state: 'differs', verifyOnly: false, endedAt: null, users: 10 },
    ...{ differing: 1, reason: '1 of 10 users differs', progress: { folded: 5, live: 10 } },
    createdAt: '2026-03-01T00:00:00.000Z',
  }
  const job = jobOf('rebuilds', view)
  expect(job).toMatchObject({ share: 0.5, tone: 'wrong', trouble: '1 of 10 users differs' })
  expect(job.steps.map(({ label }) => label)).toEqual(['Swap in', 'Cancel'])
  expect(isOpen(job)).toBe(true)
  const failed = jobOf('rebuilds', { ...view, state: 'failed', endedAt: view.createdAt })
  expect(isOpen(failed)).toBe(false)
})

test('a deletion names nobody, and says which stores are clean', () => {
  const view = {
    ...{ id: 4, kind: 'delete_only', userId: 'secret@mail.test', userIds: ['secret@mail.test'] },
    ...{ ids: 1, idsFound: 1, origin: 'api', state: 'running', reason: null },
    stores: { profile: { state: 'erased' }, parked: { state: 'running' } },
    destinations: [{ sourceId: 1, destinationId: 2, notices: 1, state: 'sent' }],
    createdAt: '2026-03-01T00:00:00.000Z',
  }
  const job = jobOf('deletions', view)
  expect(job.share).toBe(0.5)
  expect(job.facts).toContainEqual(['Stores erased', '1 of 2'])
  expect(job.facts).toContainEqual(['Told', 'Webhooks'])
  expect(JSON.stringify(job)).not.toContain('secret')
})

test('lengths of time are told in what people count in', () => {
  expect([0, 59.2, 61, 3_600, 90_061].map(durationOf)).toEqual([
    '0 s',
    '1 min 0 s',
    '1 min 1 s',
    '1 h 0 min',
    '25 h 1 min',
  ])
})

describe('the admin port', async () => {
  const { url, viewer } = await startTestAdmin()

  test('serves the page and all it loads, to anybody, and lets nothing else into it', async () => {
    const page = await fetch(`${url}/`)
    expect(page.status).toBe(200)
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    const texts = [await page.text()]
    const seen = new Set<string>()
    for (const text of texts)
      for (const [, from, beside] of text.matchAll(/"(\/dashboard\/[^"]+)"|from '\.(\/[^']+)'/g)) {
        const path = from ?? `/dashboard${beside}`
        if (seen.has(path)) continue
        seen.add(path)
        const answer = await fetch(`${url}${path}`)
        expect(answer.status, path).toBe(200)
        expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
        texts.push(await answer.text())
      }
    expect(seen).toContain('/dashboard/jobs.js')
  })

  test('answers what every kind is made of', async () => {
    for (const { name } of kinds) {
      const { status, body } = await viewer('GET', `/admin/v1/${name}`)
      expect(status, name).toBe(200)
      expect(body[name]).toEqual([])
    }
  })

  test('serves nothing beside it', async () => {
    for (const path of ['/dashboard/', '/dashboard/tsconfig.json', '/dashboard/..%2fpackage.json'])
      expect((await fetch(url + path)).status, path).toBe(404)
  })
})

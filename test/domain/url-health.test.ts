import { expect, test } from 'vitest'
import type { Answer } from '../../src/domain/round.ts'
import { adopt, answered, heal } from '../../src/domain/url-answer.ts'
import {
  begin,
  mayTryLast,
  openUrlHealth,
  setPace,
  standingOf,
  type UrlHealth,
} from '../../src/domain/url-health.ts'

const delivered: Answer = { type: 'delivered' }
const busy: Answer = { type: 'temporary', reason: 'status_503', status: 503, retryAfterMs: null }
const tooMany: Answer = { type: 'temporary', reason: 'status_429', status: 429, retryAfterMs: null }
const refused: Answer = {
  type: 'temporary',
  reason: 'connection_refused',
  status: null,
  retryAfterMs: null,
}
const ours: Answer = {
  type: 'temporary',
  reason: 'local_resources',
  status: null,
  retryAfterMs: null,
}
const unresolved: Answer = {
  type: 'temporary',
  reason: 'dns_failed',
  status: null,
  retryAfterMs: null,
}
const notFound: Answer = { type: 'final', reason: 'status_404', status: 404 }
const gone: Answer = { type: 'final', reason: 'status_410', status: 410 }
const selfSigned: Answer = { type: 'final', reason: 'tls_self_signed', status: null }
const unbuildable: Answer = { type: 'final', reason: 'invalid_request', status: null }

const aHealth = (cap = 20, rate: number | null = null) => openUrlHealth({ cap, rate }, 0)

const random = () => 0.5

/** One request and its answer. */
const ask = (health: UrlHealth, answer: Answer, now: number) =>
  answered(health, begin(health, now), { answer, now, isLast: false, random })

const times = (count: number, work: (at: number) => void) => {
  for (let at = 0; at < count; at += 1) work(at)
}

test('ten results of which seven failed for a time open the breaker, nine do not', () => {
  const health = aHealth()
  times(3, () => ask(health, delivered, 0))
  times(6, () => ask(health, busy, 1_000))
  expect(standingOf(health, 1_000)).toBe('free')
  expect(ask(health, busy, 2_000)).toMatchObject({
    from: { breaker: 'closed' },
    to: { breaker: 'open' },
    reason: 'status_503',
  })
  expect(standingOf(health, 2_000)).toBe('open')
})

test('six of ten do not open it, and results older than 30 seconds count no more', () => {
  const six = aHealth()
  times(4, () => ask(six, delivered, 0))
  times(6, () => ask(six, busy, 0))
  expect(standingOf(six, 0)).toBe('free')
  const old = aHealth()
  times(9, () => ask(old, busy, 0))
  ask(old, busy, 30_000)
  expect(standingOf(old, 30_000)).toBe('free')
})

test('five connections in a row that do not come about open it at once', () => {
  const health = aHealth()
  times(4, () => ask(health, refused, 0))
  ask(health, delivered, 0)
  times(4, (at) => ask(health, refused, at * 600_000))
  expect(standingOf(health, 1_800_000)).toBe('free')
  ask(health, refused, 2_400_000)
  expect(standingOf(health, 2_400_000)).toBe('open')
})

test('names that no server resolves say nothing of the receiver: nothing opens', () => {
  const health = aHealth()
  times(40, () => expect(ask(health, unresolved, 0)).toBeNull())
  expect(standingOf(health, 0)).toBe('free')
  expect(health.inFlight).toBe(0)
  // Nor do they hide what the receiver itself does.
  times(4, () => ask(health, refused, 0))
  ask(health, unresolved, 0)
  ask(health, refused, 0)
  expect(standingOf(health, 0)).toBe('open')
})

test('a probe that could not be resolved is made again, and waits no longer than the one before', () => {
  const { health, now } = probing()
  ask(health, unresolved, now)
  expect(standingOf(health, now + 4_000)).toBe('open')
  expect(standingOf(health, now + 11_000)).toBe('probe')
})

const probing = () => {
  const health = aHealth()
  times(5, () => ask(health, refused, 0))
  const now = health.probeAt
  expect(standingOf(health, now)).toBe('probe')
  return { health, now }
}

const opened = (now = 0, cap = 20) => {
  const health = aHealth(cap)
  times(5, () => ask(health, refused, now))
  return health
}

test('an open breaker lets one probe through after 5 s, then after twice as long up to 60 s', () => {
  const health = opened()
  const waits: number[] = []
  let now = 0
  times(6, () => {
    const from = now
    while (standingOf(health, now) === 'open') now += 100
    waits.push((now - from) / 1_000)
    const probe = begin(health, now)
    expect(standingOf(health, now + 600_000)).toBe('open')
    expect(answered(health, probe, { answer: busy, now, isLast: false, random })).toBe(null)
  })
  expect(waits).toEqual([5, 10, 20, 40, 60, 60])
})

test('probes of many URLs that failed together are spread', () => {
  const at = (share: number) => {
    const health = aHealth()
    times(5, () =>
      answered(health, begin(health, 0), {
        answer: refused,
        now: 0,
        isLast: false,
        random: () => share,
      }),
    )
    return health.probeAt
  }
  expect([at(0), at(0.999_999)]).toEqual([4_500, 5_500])
})

const ramping = (cap = 20) => {
  const health = opened(0, cap)
  expect(ask(health, delivered, 5_000)).toMatchObject({ to: { breaker: 'ramp' } })
  return health
}

test('after a good probe it is asked one at a time, then two, four and so on up to its cap', () => {
  const health = ramping()
  const limits: number[] = []
  while (health.breaker === 'ramp') {
    limits.push(health.limit)
    const requests = Array.from({ length: health.limit }, () => begin(health, 5_000))
    expect(standingOf(health, 5_000)).toBe('full')
    for (const request of requests)
      answered(health, request, { answer: delivered, now: 5_000, isLast: false, random })
  }
  expect(limits).toEqual([1, 2, 4, 8, 16])
  expect(health).toMatchObject({ breaker: 'closed', limit: 20 })
})

test('a failure halves the ramp, and it grows again only when 95 of 100 succeed', () => {
  const health = ramping()
  times(7, () => ask(health, delivered, 5_000))
  expect(health.limit).toBe(8)
  ask(health, busy, 5_000)
  expect(health.limit).toBe(4)
  times(18, () => ask(health, delivered, 5_000))
  expect(health.limit).toBe(4)
  ask(health, delivered, 5_000)
  expect(health.limit).toBe(8)
})

test('failures of requests that were under way together halve it once', () => {
  const health = ramping()
  times(15, () => ask(health, delivered, 5_000))
  expect(health.limit).toBe(16)
  const requests = Array.from({ length: 6 }, () => begin(health, 6_000))
  for (const request of requests)
    answered(health, request, { answer: busy, now: 6_000, isLast: false, random })
  expect(health.limit).toBe(8)
})

test('a ramp that fails opens the breaker again, and its next probe comes later', () => {
  const health = ramping()
  times(5, () => ask(health, refused, 5_000))
  expect(standingOf(health, 14_999)).toBe('open')
  expect(standingOf(health, 15_000)).toBe('probe')
})

test('a 429 halves the limit, which grows back by one each time all of it succeeded', () => {
  const health = aHealth(8)
  ask(health, tooMany, 0)
  expect(health.limit).toBe(4)
  times(4, () => ask(health, delivered, 0))
  expect(health.limit).toBeGreaterThan(4.8)
  expect(health.limit).toBeLessThanOrEqual(5)
  times(100, () => ask(health, delivered, 0))
  expect(health.limit).toBe(8)
})

test('another failure leaves the limit of a closed breaker alone', () => {
  const health = aHealth()
  ask(health, busy, 0)
  expect(health.limit).toBe(20)
})

test('twenty refusals in a row hold the URL; one request a minute finds out', () => {
  const health = aHealth()
  times(19, () => ask(health, notFound, 0))
  ask(health, busy, 0)
  times(19, () => ask(health, notFound, 0))
  expect(health.state).toBe('ok')
  expect(ask(health, notFound, 0)).toMatchObject({ to: { state: 'rejecting' }, status: 404 })
  expect(standingOf(health, 59_999)).toBe('open')
  ask(health, notFound, 60_000)
  expect(standingOf(health, 119_999)).toBe('open')
  expect(standingOf(health, 120_000)).toBe('probe')
  expect(ask(health, delivered, 120_000)).toMatchObject({ to: { state: 'ok', breaker: 'ramp' } })
})

test('five minutes of nothing but refusals hold it too, however few they are', () => {
  const health = aHealth()
  ask(health, notFound, 0)
  ask(health, notFound, 299_999)
  expect(health.state).toBe('ok')
  ask(health, notFound, 300_000)
  expect(health.state).toBe('rejecting')
})

test('a refusal during a probe of an open breaker shows that the receiver is back', () => {
  const health = opened()
  ask(health, notFound, 5_000)
  expect(health).toMatchObject({ state: 'ok', breaker: 'ramp' })
})

test('a 410 disables the URL until an operator says otherwise', () => {
  const health = aHealth()
  expect(ask(health, gone, 0)).toMatchObject({ to: { state: 'disabled' }, status: 410 })
  expect(standingOf(health, 1e12)).toBe('disabled')
  expect(mayTryLast(health, 1e12)).toBe(false)
  expect(heal(health, 5)).toMatchObject({ to: { state: 'ok', breaker: 'ramp' }, at: 5 })
  expect(standingOf(health, 5)).toBe('free')
})

test('a self-signed certificate holds the URL, also when the breaker is open', () => {
  for (const health of [aHealth(), opened()]) {
    expect(ask(health, selfSigned, 5_000)).toMatchObject({ to: { state: 'held_tls' } })
    expect(standingOf(health, 1e12)).toBe('held')
    expect(mayTryLast(health, 1e12)).toBe(false)
  }
})

test('what another process found holds here; a late answer does not undo it', () => {
  const health = aHealth()
  const request = begin(health, 0)
  const told = { state: 'rejecting', reason: 'status_404', status: 404, since: 3 } as const
  expect(adopt(health, told, 60_000)).toMatchObject({ to: { state: 'rejecting' }, at: 3 })
  expect(adopt(health, told, 60_000)).toBe(null)
  answered(health, request, { answer: delivered, now: 10, isLast: false, random })
  expect(standingOf(health, 10)).toBe('open')
  expect(standingOf(health, 60_000)).toBe('probe')
})

test('faults of this machine, and messages that cannot be sent, say nothing about the URL', () => {
  const health = aHealth()
  times(50, () => ask(health, ours, 0))
  times(50, () => ask(health, unbuildable, 0))
  expect(health).toMatchObject({ state: 'ok', breaker: 'closed', limit: 20, inFlight: 0 })
  const open = opened()
  ask(open, ours, 5_000)
  expect(standingOf(open, 5_000)).toBe('open')
  expect(open.probeMs).toBe(10_000)
})

test('last tries pass an open breaker up to the cap, and one that succeeds starts the ramp', () => {
  const health = opened(0, 2)
  const requests = [begin(health, 10), begin(health, 10)]
  expect(mayTryLast(health, 10)).toBe(false)
  answered(health, requests[0] as number, { answer: busy, now: 10, isLast: true, random })
  expect(mayTryLast(health, 10)).toBe(true)
  expect(standingOf(health, 10)).toBe('open')
  answered(health, requests[1] as number, { answer: delivered, now: 10, isLast: true, random })
  expect(health.breaker).toBe('ramp')
})

test('no second sees more than 1.1 times the rate an operator set', () => {
  const health = aHealth(1_000, 50)
  const sent: number[] = []
  for (let now = 0; now < 10_000; now += 7)
    while (standingOf(health, now) === 'free') {
      ask(health, delivered, now)
      sent.push(now)
    }
  expect(sent.length).toBeGreaterThan(490)
  for (const from of sent)
    expect(sent.filter((at) => at >= from && at < from + 1_000).length).toBeLessThanOrEqual(55)
})

test('a changed cap or rate holds from then on', () => {
  const health = aHealth(20)
  setPace(health, { cap: 5, rate: 1 })
  expect(health.limit).toBe(5)
  ask(health, delivered, 0)
  expect(standingOf(health, 0)).toBe('paced')
  expect(standingOf(health, 1_000)).toBe('free')
  setPace(health, { cap: 40, rate: null })
  expect(health.limit).toBe(40)
  expect(standingOf(health, 0)).toBe('free')
})

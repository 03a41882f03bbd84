import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Answer } from '../../src/domain/round.ts'
import { answered } from '../../src/domain/url-answer.ts'
import { begin, mayTryLast, openUrlHealth, standingOf } from '../../src/domain/url-health.ts'

/** What the rules say, told from the list of all that happened. */
type Model = {
  /** Results since the breaker last opened or began to ramp. */
  results: { readonly at: number; readonly kind: Kind }[]
  open: boolean
  openedAt: number
  probes: number[]
  probing: boolean
}

type Kind = 'ok' | 'busy' | 'refused' | 'final'

const answers: Readonly<Record<Kind, Answer>> = {
  ok: { type: 'delivered' },
  busy: { type: 'temporary', reason: 'status_500', status: 500, retryAfterMs: null },
  refused: {
    type: 'temporary',
    reason: 'connection_refused',
    status: null,
    retryAfterMs: null,
  },
  final: { type: 'final', reason: 'status_400', status: 400 },
}

const shouldOpen = (results: Model['results'], now: number): boolean => {
  const second = Math.floor(now / 1_000)
  const recent = results.filter(({ at }) => Math.floor(at / 1_000) > second - 30)
  const failed = recent.filter(({ kind }) => kind === 'busy' || kind === 'refused')
  if (recent.length >= 10 && failed.length >= 0.7 * recent.length) return true
  const last = results.slice(-5)
  return last.length === 5 && last.every(({ kind }) => kind === 'refused')
}

type Step =
  | { readonly type: 'pass'; readonly ms: number }
  | { readonly type: 'ask'; readonly isLast: boolean }
  | { readonly type: 'answer'; readonly kind: Kind; readonly pick: number }

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    {
      weight: 2,
      arbitrary: fc.record({
        type: fc.constant('pass' as const),
        ms: fc.integer({ min: 0, max: 20_000 }),
      }),
    },
    {
      weight: 6,
      arbitrary: fc.record({ type: fc.constant('ask' as const), isLast: fc.boolean() }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        type: fc.constant('answer' as const),
        kind: fc.constantFrom<Kind>('ok', 'ok', 'busy', 'refused', 'refused', 'final'),
        pick: fc.nat(),
      }),
    },
  ),
  { maxLength: 300 },
)

type Flight = { readonly request: number; readonly isProbe: boolean; readonly isLast: boolean }

/** The machine and the model side by side. */
const openWorld = (cap: number) => {
  const health = openUrlHealth({ cap, rate: null }, 0)
  const model: Model = { results: [], open: false, openedAt: 0, probes: [], probing: false }
  const flying: Flight[] = []
  let now = 0
  const send = (isProbe: boolean, isLast: boolean) =>
    flying.push({ request: begin(health, now), isProbe, isLast })
  const ask = (isLast: boolean) => {
    const standing = standingOf(health, now)
    expect(standing === 'open' || standing === 'probe').toBe(model.open)
    if (standing === 'probe') {
      expect(model.probing).toBe(false)
      expect(now - (model.probes.at(-1) ?? model.openedAt)).toBeGreaterThanOrEqual(4_500)
      model.probes.push(now)
      model.probing = true
      send(true, false)
    } else if (standing === 'free' || (standing === 'open' && isLast && mayTryLast(health, now))) {
      expect(flying.length).toBeLessThan(cap)
      send(false, standing === 'open')
    }
  }
  const judge = (flight: Flight, kind: Kind) => {
    if (flight.isProbe) model.probing = false
    if (model.open) {
      if (!flight.isProbe && !flight.isLast) return
      if (kind !== 'ok' && kind !== 'final') return
      Object.assign(model, { open: false, results: [] })
      expect(health.limit).toBe(1)
      return
    }
    model.results.push({ at: now, kind })
    const isFailure = kind === 'busy' || kind === 'refused'
    if (isFailure && shouldOpen(model.results, now))
      Object.assign(model, { open: true, openedAt: now, results: [], probes: [] })
  }
  const answer = (kind: Kind, pick: number) => {
    const [flight] = flying.splice(pick % Math.max(1, flying.length), 1)
    if (!flight) return
    const { request, isLast } = flight
    answered(health, request, { answer: answers[kind], now, isLast, random: () => 0.25 })
    if (health.state !== 'ok') return
    judge(flight, kind)
    expect(health.breaker === 'open').toBe(model.open)
  }
  return {
    health,
    flying,
    take: (step: Step) => {
      if (step.type === 'pass') now += step.ms
      else if (step.type === 'ask') ask(step.isLast)
      else answer(step.kind, step.pick)
    },
  }
}

test('nothing is asked of an open URL but probes and last tries, and it opens exactly when it should', () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 30 }), (all, cap) => {
      const world = openWorld(cap)
      for (const step of all) {
        world.take(step)
        // Refusing everything is another state, tested by itself.
        if (world.health.state !== 'ok') return
        expect(world.health.inFlight).toBe(world.flying.length)
        expect(world.health.limit).toBeGreaterThanOrEqual(1)
        expect(world.health.limit).toBeLessThanOrEqual(cap)
      }
    }),
    { numRuns: 500 },
  )
})

test('a steady receiver is back at its cap soon, whatever the cap', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 200 }), (cap) => {
      const health = openUrlHealth({ cap, rate: null }, 0)
      const one = (answer: Answer, now: number) =>
        answered(health, begin(health, now), { answer, now, isLast: false, random: () => 0.5 })
      for (let at = 0; at < 5; at += 1) one(answers.refused, 0)
      one(answers.ok, 5_000)
      let asked = 0
      while (health.breaker !== 'closed') {
        asked += 1
        one(answers.ok, 5_000)
      }
      expect(asked).toBeLessThanOrEqual(2 * cap)
      expect(health.limit).toBe(cap)
    }),
  )
})

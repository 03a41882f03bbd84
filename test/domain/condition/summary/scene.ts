// Events, windows and a naive reading of both, for the properties of summaries.
import fc from 'fast-check'
import { byteWriter, packedReader } from '../../../../src/domain/bytes.ts'
import type { Kind, Observation } from '../../../../src/domain/condition/summary/kind.ts'
import type { Window } from '../../../../src/domain/condition/window.ts'
import type { Json } from '../../../../src/domain/message.ts'

const hour = 3_600_000

/** Instants in which all windows below have their edges, so that most events lie on one, or one beside it. */
const instant = (max: number) =>
  fc
    .tuple(fc.integer({ min: 0, max }), fc.constantFrom(-1, 0, 0, 1, 7))
    .map(([steps, off]) => Math.max(0, steps * 10 + off))

/** Days: around the two changes of clocks in Dublin of 2026, and a leap day. */
const dublin = 'Europe/Dublin'
const dayInstant = fc
  .tuple(
    fc.constantFrom('2026-03-27', '2026-10-23', '2028-02-27'),
    fc.integer({ min: 0, max: 6 * 24 }),
    fc.constantFrom(-1, 0, 1, 1_800_000),
  )
  .map(([from, hours, off]) => Date.parse(from) + hours * hour + off)

const grid = fc.constantFrom(1, 10, 60, 60)
const steps = fc.integer({ min: 1, max: 6 })

const shortWindow: fc.Arbitrary<Window | null> = fc.oneof(
  fc.constant(null),
  fc
    .tuple(grid, steps)
    .map(([gridMs, n]) => ({ type: 'last', gridMs, lastMs: n * gridMs }) as const),
  fc.tuple(grid, fc.integer({ min: 0, max: 4 }), steps).map(([gridMs, n, m]) => {
    const fromMs = n * gridMs
    return { type: 'ago', gridMs, fromMs, untilMs: fromMs + m * gridMs } as const
  }),
  fc
    .tuple(
      fc.option(fc.integer({ min: 0, max: 600 })),
      fc.option(fc.integer({ min: 300, max: 1_200 })),
    )
    .map(([after, before]) => ({ type: 'fixed', after, before }) as const),
)

const dayWindow: fc.Arbitrary<Window> = fc
  .tuple(fc.integer({ min: 1, max: 4 }), fc.constantFrom('UTC', dublin, 'America/St_Johns'))
  .map(([days, timezone]) => ({ type: 'calendar', days, timezone }) as const)

export type Event = Observation & { readonly step: number }

export type Scene = {
  readonly window: Window | null
  readonly events: readonly Event[]
  /** Where the events are cut into two summaries. */
  readonly cut: number
  /** Instants not before any event. */
  readonly asked: readonly number[]
}

/** Scenes of events with such properties, in the order in which they arrive. */
export const sceneOf = (
  properties: fc.Arbitrary<Json>,
  { steps = 1, eventsMax = 14, instantMax = 120 } = {},
): fc.Arbitrary<Scene> => {
  const gap = fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 200 }))
  const of = (times: fc.Arbitrary<number>, window: fc.Arbitrary<Window | null>, scale: number) =>
    fc
      .record({
        window,
        said: fc.array(
          fc.record({
            te: times,
            late: fc.integer({ min: 0, max: 3 }),
            step: fc.integer({ min: 0, max: steps - 1 }),
            properties,
          }),
          { maxLength: eventsMax },
        ),
        cut: fc.nat(),
        gaps: fc.array(gap, { minLength: 3, maxLength: 3 }),
      })
      .map(({ window, said, cut, gaps }) => {
        const events = said.map(({ te, late, step, properties }, index) => ({
          te,
          r: te + late,
          id: `m${(index * 7) % 10}${index}`,
          properties,
          step,
        }))
        const newest = Math.max(0, ...events.map(({ te }) => te))
        return {
          window,
          events,
          cut: cut % (events.length + 1),
          asked: gaps.map((gap) => newest + gap * scale),
        }
      })
  return fc.oneof(
    { weight: 4, arbitrary: of(instant(instantMax), shortWindow, 3) },
    { weight: 1, arbitrary: of(dayInstant, dayWindow, hour) },
  )
}

export const foldAll = <S>(kind: Kind<S>, events: readonly Event[], from = kind.empty): S =>
  events.reduce((summary, event) => kind.fold(summary, event, event.step), from)

const writer = byteWriter()
const reader = packedReader()

/** Written and read; throws when reading ends elsewhere than writing did. */
export const rewritten = <S>(kind: Kind<S>, summary: S): S => {
  kind.write(writer, summary)
  const packed = writer.take()
  reader.open(packed, 0)
  const read = kind.read(reader)
  if (reader.at() !== packed.length) throw new Error('a summary was not read to its end')
  return read
}

export const sizeOf = <S>(kind: Kind<S>, summary: S): number => {
  kind.write(writer, summary)
  return writer.take().length
}

/** The local date as the platform writes it, as a day number. */
const dayNumber = (timezone: string, at: number): number =>
  Math.round(
    Date.parse(
      `${new Intl.DateTimeFormat('en-CA', { timeZone: timezone, dateStyle: 'short' }).format(at)}T00:00:00Z`,
    ) / 86_400_000,
  )

export const dayOf = (timezone: string, at: number): number => {
  const key = `${timezone} ${at}`
  const held = days.get(key) ?? dayNumber(timezone, at)
  days.set(key, held)
  return held
}
const days = new Map<string, number>()

/** Straight from the definition. */
export const isIn = (window: Window | null, te: number, at: number): boolean => {
  switch (window?.type) {
    case undefined:
      return true
    case 'last': {
      const { gridMs: g, lastMs } = window
      return Math.floor(te / g) > Math.floor(at / g) - lastMs / g
    }
    case 'ago': {
      const { gridMs: g, fromMs, untilMs } = window
      const age = Math.floor(at / g) - Math.floor(te / g)
      return age >= fromMs / g && age < untilMs / g
    }
    case 'fixed':
      return (
        (window.after === null || te >= window.after) &&
        (window.before === null || te < window.before)
      )
    case 'calendar':
      return dayOf(window.timezone, te) > dayOf(window.timezone, at) - window.days
  }
}

/** In the order (te, r, message id). */
export const inOrder = (events: readonly Event[]): readonly Event[] =>
  events.toSorted((a, b) => a.te - b.te || a.r - b.r || (a.id < b.id ? -1 : 1))

/** Every instant at which an answer may change, and those beside it: short windows end soon, others on the grid. */
export const edgesAfter = ({ window }: Scene, at: number, until: number): readonly number[] => {
  const step = window?.type === 'calendar' ? 1_800_000 : 10
  const edges: number[] = []
  if (step === 10) for (let edge = at + 1; edge < at + 30; edge++) edges.push(edge)
  for (let edge = at - (at % step); edge <= until; edge += step) edges.push(edge - 1, edge)
  return edges.filter((edge) => edge > at && edge < until)
}

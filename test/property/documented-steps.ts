// Audiences as other products document theirs, at work: what is said at which instant, and who is told of then. The
// topics are those of the tests that Dittofeed has of its segments and user properties (MIT); people, names and numbers
// are our own.
import type { Json } from '../support/language.ts'

export type Saying = {
  readonly type: 'track' | 'identify'
  readonly userId?: string
  readonly anonymousId?: string
  readonly event?: string
  readonly properties?: object
  readonly traits?: object
  /** Milliseconds before it is received. */
  readonly ago: number
}

/** At a place of the timeline: what is said there, or what it means from then on, and what destinations hear. */
export type Turn = {
  readonly says?: readonly Saying[]
  /** A condition or measure in the place of the one before. */
  readonly becomes?: string
  readonly told?: { readonly [userId: string]: Json }
}

/** Seconds from the start. */
export const timeline = {
  start: 0,
  soon: 60,
  later: 120,
  /** Five minutes after all of those. */
  past: 480,
  again: 540,
  evening: 7 * 3_600,
  week: 8 * 86_400,
  after: 9 * 86_400,
} as const

export type Scenario = {
  readonly about: string
  /** The condition, or the measure of a computed trait. */
  readonly is: string
  readonly turns: { readonly [place in keyof typeof timeline]?: Turn }
}

/** The first instant of the timeline. */
export const started = Date.UTC(2026, 2, 2, 9)
export const after = (seconds: number) => new Date(started + seconds * 1_000).toISOString()

export const has = (userId: string, traits: object, ago = 100): Saying => ({
  type: 'identify',
  userId,
  traits,
  ago,
})
type Told = (userId: string, event: string, properties?: object) => Saying
export const didAgo =
  (ago: number): Told =>
  (userId, event, properties = {}) => ({ type: 'track', userId, event, properties, ago })
export const did = didAgo(100)

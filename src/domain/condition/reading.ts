// Reading untrusted JSON with the path in hand, so that every refusal says where and what was expected.
import type { Json, JsonObject } from '../message.ts'

export type Report = {
  readonly problems: { readonly path: string; readonly message: string }[]
  leaves: number
  readonly leavesMax: number
  /** Of days and dates that name none themselves. */
  readonly timezone: string
}

export type Reading = {
  /** The value itself, `undefined` when it is not there. */
  readonly value: Json | undefined
  readonly timezone: string
  readonly given: () => boolean
  in(key: string): Reading
  object(): JsonObject | null
  list(): readonly Reading[] | null
  /** A string that is not empty. */
  text(): string | null
  integer(min: number, max: number): number | null
  oneOf<K extends string>(allowed: readonly K[]): K | null
  /** Refuses every key that is not named. */
  only(keys: readonly string[]): void
  /** Counts one comparison. */
  leaf(): void
  refuse(message: string): null
}

const textMax = 1_000

export const problemsOf = ({ problems, leaves, leavesMax }: Report) =>
  leaves > leavesMax
    ? [...problems, { path: '', message: `expected at most ${leavesMax} comparisons` }]
    : problems

export const readingOf = (value: Json | undefined, report: Report, path = ''): Reading => {
  const refuse = (message: string) => {
    report.problems.push({ path, message })
    return null
  }
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  const object = isObject ? (value as JsonObject) : null
  const expected = (what: string) =>
    refuse(value === undefined ? `expected ${what}, but it is missing` : `expected ${what}`)
  return {
    value,
    timezone: report.timezone,
    given: () => value !== undefined,
    in: (key) =>
      readingOf(
        object !== null && Object.hasOwn(object, key) ? object[key] : undefined,
        report,
        path === '' ? key : `${path}.${key}`,
      ),
    object: () => object ?? expected('an object'),
    list: () =>
      Array.isArray(value)
        ? value.map((element: Json, at) => readingOf(element, report, `${path}[${at}]`))
        : expected('a list'),
    text: () =>
      typeof value === 'string' && value !== '' && value.length <= textMax
        ? value
        : expected(`a string of 1 to ${textMax} characters`),
    integer: (min, max) =>
      typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max
        ? value
        : expected(`a whole number from ${min} to ${max}`),
    oneOf: (allowed) =>
      allowed.find((candidate) => candidate === value) ??
      expected(`one of ${allowed.map((each) => `"${each}"`).join(', ')}`),
    only: (keys) => {
      for (const key of Object.keys(object ?? {}))
        if (!keys.includes(key))
          refuse(
            `expected only ${keys.map((each) => `"${each}"`).join(', ')}; "${key}" is not known here`,
          )
    },
    leaf: () => {
      report.leaves += 1
    },
    refuse,
  }
}

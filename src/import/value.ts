// What the text of a cell becomes: a value of the type its column has.
import type { Json } from '../domain/message.ts'
import { readInstant } from '../domain/timestamp.ts'

export const valueTypes = [
  'string',
  'number',
  'integer',
  'boolean',
  'json',
  'time',
  'seconds',
  'milliseconds',
] as const

export type ValueType = (typeof valueTypes)[number]

/** `undefined`: the text is none; `expected` says what would be one. */
export type Converter = {
  readonly expected: string
  read(text: string): Json | undefined
}

const decimal = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?$/
const whole = /^[+-]?\d{1,16}$/

export const convertersOf: Readonly<Record<ValueType, Converter>> = {
  string: { expected: 'a text', read: (text) => text },
  number: {
    expected: 'a number',
    read: (text) => (decimal.test(text.trim()) ? finite(Number(text)) : undefined),
  },
  integer: {
    expected: 'a whole number',
    read: (text) => (whole.test(text.trim()) ? Number(text) : undefined),
  },
  boolean: {
    expected: 'true or false, yes or no, 1 or 0',
    read: (text) => truths.get(text.trim().toLowerCase()),
  },
  json: { expected: 'JSON', read: (text) => readJson(text) },
  time: {
    expected: 'a time in ISO 8601, or in seconds or milliseconds since 1970',
    read: (text) => isoOf(readInstant(text.trim())),
  },
  seconds: {
    expected: 'seconds since 1970',
    read: (text) =>
      decimal.test(text.trim()) ? isoOf(Math.round(Number(text) * 1_000)) : undefined,
  },
  milliseconds: {
    expected: 'milliseconds since 1970',
    read: (text) => (decimal.test(text.trim()) ? isoOf(Math.round(Number(text))) : undefined),
  },
}

const truths = new Map([
  ['true', true],
  ['yes', true],
  ['1', true],
  ['false', false],
  ['no', false],
  ['0', false],
])

const finite = (value: number) => (Number.isFinite(value) ? value : undefined)

/** What no date holds is no time. */
const isoOf = (instant: number | null): string | undefined =>
  instant === null || Math.abs(instant) > 8.64e15 ? undefined : new Date(instant).toISOString()

const readJson = (text: string): Json | undefined => {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

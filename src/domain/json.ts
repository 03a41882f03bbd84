// Cleans a parsed JSON value, so that its text can be stored anywhere and parsed back to the same.
import type { Json } from './message.ts'
import type { Flag } from './rejection.ts'

export type Cleaning = {
  readonly depthMax: number
  readonly flag: (flag: Flag) => void
}

export type Cleaned =
  | { readonly value: Json }
  | { readonly rejected: 'too_deep' | 'number_out_of_range' }

type Run = Cleaning & { failed: 'too_deep' | 'number_out_of_range' | null }

/**
 * Strips `__proto__` keys, replaces lone surrogates and NUL with U+FFFD in keys and texts, and
 * refuses numbers that overflowed. Changes the value in place where it can: it was parsed for us.
 */
export const clean = (value: Json, cleaning: Cleaning): Cleaned => {
  const run: Run = { depthMax: cleaning.depthMax, flag: cleaning.flag, failed: null }
  const cleaned = cleanValue(value, 1, run)
  return run.failed ? { rejected: run.failed } : { value: cleaned }
}

const cleanValue = (value: Json, depth: number, run: Run): Json => {
  if (typeof value === 'string') return cleanText(value, run)
  if (typeof value === 'number') return cleanNumber(value, run)
  if (typeof value !== 'object' || value === null) return value
  if (depth > run.depthMax) {
    run.failed = 'too_deep'
    return null
  }
  return Array.isArray(value)
    ? cleanArray(value, depth, run)
    : cleanObject(value as Record<string, Json>, depth, run)
}

const cleanArray = (array: Json[], depth: number, run: Run): Json => {
  for (let at = 0; at < array.length; at += 1) {
    const before = array[at] as Json
    const after = cleanValue(before, depth + 1, run)
    if (after !== before) array[at] = after
  }
  return array
}

const cleanObject = (object: Record<string, Json>, depth: number, run: Run): Json => {
  let renamed = false
  // Parsed JSON inherits nothing enumerable, and for-in is much faster than Object.keys here.
  for (const key in object) {
    if (key === '__proto__') {
      run.flag('proto_key_stripped')
      delete object[key]
      continue
    }
    if (!isCleanText(key)) renamed = true
    const before = object[key] as Json
    const after = cleanValue(before, depth + 1, run)
    if (after !== before) object[key] = after
  }
  return renamed ? withCleanKeys(object, run) : object
}

const withCleanKeys = (object: Record<string, Json>, run: Run): Json =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [cleanText(key, run), value]))

const cleanNumber = (number: number, run: Run) => {
  if (Number.isFinite(number)) {
    if (Number.isInteger(number) && !Number.isSafeInteger(number)) run.flag('integer_rounded')
    return number
  }
  run.failed = 'number_out_of_range'
  return number
}

const isCleanText = (text: string) => text.isWellFormed() && !text.includes('\0')

const cleanText = (text: string, run: Run): string => {
  if (isCleanText(text)) return text
  if (!text.isWellFormed()) run.flag('surrogate_replaced')
  if (text.includes('\0')) run.flag('nul_replaced')
  return text.toWellFormed().replaceAll('\0', '\ufffd')
}

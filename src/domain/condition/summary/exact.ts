// Decimals kept exactly, as whole millionths: sums of floats would depend on the order they are taken in.
import type { ByteReader, ByteWriter } from '../../bytes.ts'
import type { Json } from '../../message.ts'
import { numberOf } from '../value.ts'

/** Whole millionths: a number while that is exact, a bigint beyond. */
export type Millionths = number | bigint

const million = 1_000_000

/**
 * Of a finite number as JSON writes it, or of a string written like one; digits below a millionth are
 * rounded, halves away from zero. `null` for everything else.
 */
export const millionthsOf = (value: Json | undefined): Millionths | null => {
  const number = value === undefined ? null : numberOf(value)
  if (number === null) return null
  if (typeof value === 'number') {
    // Up to fifteen digits a number and its shortest text say the same.
    const scaled = Math.round(number * million)
    if (Math.abs(scaled) < 1e15 && scaled / million === number) return scaled + 0
  }
  return fromText(String(value))
}

const parts = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:e([+-][0-9]+))?$/

const fromText = (text: string): Millionths => {
  const [, sign, whole = '0', fraction = '', exponent = '0'] = parts.exec(text) ?? []
  const digits = whole + fraction
  // Where the digits end that are millionths and more.
  const end = whole.length + Number(exponent) + 6
  const kept = BigInt(end > 0 ? digits.slice(0, end).padEnd(end, '0') : '0')
  const rounded = end >= 0 && (digits[end] ?? '0') >= '5' ? kept + 1n : kept
  return small(sign === '-' ? -rounded : rounded)
}

export const addExact = (left: Millionths, right: Millionths): Millionths => {
  if (typeof left === 'number' && typeof right === 'number') {
    const sum = left + right
    if (Number.isSafeInteger(sum)) return sum
  }
  return small(BigInt(left) + BigInt(right))
}

const small = (value: bigint): Millionths => {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}

/** The number nearest to the exact value of `sum` ÷ `count`, rounded once; never infinite. */
export const quotient = (sum: Millionths, count = 1): number => {
  if (typeof sum === 'number') return sum / (million * count)
  const magnitude = divide(sum < 0n ? -sum : sum, BigInt(million) * BigInt(count))
  const bounded = Math.min(magnitude, Number.MAX_VALUE)
  return sum < 0n ? -bounded : bounded
}

const divide = (dividend: bigint, divisor: bigint): number => {
  // Sixty bits of quotient and more round as the exact value does, if the last says whether more follow.
  const shift = Math.max(0, 64 - (bits(dividend) - bits(divisor)))
  const shifted = dividend << BigInt(shift)
  const whole = shifted / divisor
  const isExact = whole * divisor === shifted
  return Number(isExact ? whole : whole | 1n) * 2 ** -shift
}

const bits = (value: bigint): number => value.toString(16).length * 4

/** Units of the written number; what fits none is written as text. */
const units = [million, million / 100, 1]
const asText = 3
const unitsMax = 2 ** 49

export const writeExact = (to: ByteWriter, value: Millionths): void => {
  const unit = typeof value === 'number' ? unitOf(value) : -1
  if (unit < 0) writeText(to, value)
  else {
    const count = Number(value) / (units[unit] as number)
    to.varint((count < 0 ? -2 * count - 1 : 2 * count) * 4 + unit)
  }
}

/** The largest that it is a whole number of, -1 where that is too large a number. */
const unitOf = (value: number): number =>
  units.findIndex((size) => value % size === 0 && Math.abs(value / size) < unitsMax)

const writeText = (to: ByteWriter, value: number | bigint): void => {
  to.varint(asText)
  to.text(String(value))
}

export const readExact = (from: ByteReader): Millionths => {
  const head = from.varint()
  return head % 4 === asText ? small(BigInt(from.text())) : fromHead(head)
}

/** Any finite number. */
export const writeNumber = (to: ByteWriter, value: number): void => {
  const scaled = Math.round(value * million)
  if (Math.abs(scaled) < unitsMax && scaled / million === value) writeExact(to, scaled)
  else writeText(to, value)
}

export const readNumber = (from: ByteReader): number => {
  const head = from.varint()
  return head % 4 === asText ? Number(from.text()) : fromHead(head) / million
}

const fromHead = (head: number): number => {
  const folded = Math.floor(head / 4)
  const count = folded % 2 === 0 ? folded / 2 : -(folded + 1) / 2
  return count * (units[head % 4] as number)
}

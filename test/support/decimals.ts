// Exact sums of numbers as they are written.
import type { Json } from './language.ts'
import { once } from './once.ts'

/** Rounded at the sixth decimal of how the number is written. */
export const millionths = once((value: Json): bigint => {
  const [mantissa = '', exponent = '0'] = String(value).split('e')
  const [, sign, whole = '', fraction = ''] = /^(-?)(\d+)\.?(\d*)$/.exec(mantissa) ?? []
  const shift = Number(exponent) + 7 - fraction.length
  const digits = BigInt(whole + fraction + '0'.repeat(Math.max(0, shift)))
  const rounded = (digits / 10n ** BigInt(Math.max(0, -shift)) + 5n) / 10n
  return sign === '-' ? -rounded : rounded
})

/** The number nearest to so many millionths by `count`: by way of more digits than any number has, where need be. */
export const nearest = (sum: bigint, count: number): number =>
  Number.isSafeInteger(Number(sum))
    ? Number(sum) / (count * 1_000_000)
    : Number(`${(sum * 10n ** 60n) / BigInt(count)}e-66`) + 0

// Property values as summaries keep them: scalars, strings bounded in length.
import { hash } from 'node:crypto'
import type { ByteReader, ByteWriter } from '../../bytes.ts'
import type { Json } from '../../message.ts'
import { type Path, valuesAt } from '../path.ts'
import { readNumber, writeNumber } from './exact.ts'

export type Scalar = string | number | boolean

/** UTF-16 units of a string that are kept: two longer ones that begin alike are one value. */
export const textMax = 1_024

/** `null` for missing values, lists and objects. */
export const scalarOf = (value: Json | undefined): Scalar | null => {
  if (typeof value === 'string') return value.length > textMax ? cut(value) : value
  // There is one zero.
  if (typeof value === 'number') return value + 0
  return typeof value === 'boolean' ? value : null
}

/** Not within a surrogate pair: half of one cannot be written. */
const cut = (text: string): string => text.slice(0, textMax).replace(/[\uD800-\uDBFF]$/, '')

export const scalarsAt = (properties: Json | undefined, path: Path): readonly Scalar[] =>
  scalarsOf(valuesAt(properties, path))

/** By which values are told apart, those in a list each for itself. */
export const textsAt = (properties: Json | undefined, path: Path): readonly string[] =>
  scalarsOf(
    valuesAt(properties, path).flatMap((found) =>
      Array.isArray(found) ? (found as readonly Json[]) : [found],
    ),
  ).map(textOf)

const scalarsOf = (values: readonly Json[]): readonly Scalar[] => {
  const scalars: Scalar[] = []
  for (const value of values) {
    const scalar = scalarOf(value)
    if (scalar !== null) scalars.push(scalar)
  }
  return scalars
}

/** 5 and "5" are one value, and so are true and "true". */
const textOf = (scalar: Scalar): string =>
  typeof scalar === 'string' ? scalar.normalize('NFC') : String(scalar)

/** No longer than a hash where only whether two texts are the same matters. */
export const shortText = (text: string): string =>
  text.length <= hashLength ? text : `#${hash('sha256', text, 'base64').slice(0, hashLength)}`

/** 128 bits of it. */
const hashLength = 22

export const writeScalar = (to: ByteWriter, value: Scalar): void => {
  if (typeof value === 'boolean') to.varint(value ? 1 : 0)
  else if (typeof value === 'number') {
    to.varint(2)
    writeNumber(to, value)
  } else {
    to.varint(3)
    to.text(value)
  }
}

export const readScalar = (from: ByteReader): Scalar => {
  const tag = from.varint()
  if (tag < 2) return tag === 1
  return tag === 2 ? readNumber(from) : from.text()
}

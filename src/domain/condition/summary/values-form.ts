// The binary form of values: each key after the one before it, each bucket as how much older than the newest.
import type { ByteReader, ByteWriter } from '../../bytes.ts'
import type { Series } from './series.ts'
import { type Key, type Values, valuesOf } from './values.ts'

export type ValuesForm<K extends Key> = {
  /** `before` is the key written before it. */
  readonly writeKey: (to: ByteWriter, key: K, before: K | undefined) => void
  readonly readKey: (from: ByteReader, before: K | undefined) => K
  /** Whether there is more than one bucket at all. */
  readonly isTimed: boolean
  /** Whether a value can have several of them. */
  readonly isListed: boolean
  readonly isCounted: boolean
}

export const textKeys = {
  writeKey: (to: ByteWriter, key: string) => to.text(key),
  readKey: (from: ByteReader) => from.text(),
}

/** Whole ones, ascending. */
export const numberKeys = {
  writeKey: (to: ByteWriter, key: number, before: number | undefined) =>
    before === undefined ? to.signed(key) : to.varint(key - before),
  readKey: (from: ByteReader, before: number | undefined) =>
    before === undefined ? from.signed() : before + from.varint(),
}

export const writeValues = <K extends Key>(
  to: ByteWriter,
  { keys, series, newest }: Values<K>,
  form: ValuesForm<K>,
): void => {
  to.varint(keys.length)
  if (keys.length > 0 && form.isTimed) to.varint(newest)
  const cells = { ...form, newest }
  for (let at = 0; at < keys.length; at++) {
    form.writeKey(to, keys[at] as K, keys[at - 1])
    writeCells(to, series[at] as Series<number>, cells)
  }
}

type CellsForm = {
  readonly isTimed: boolean
  readonly isListed: boolean
  readonly isCounted: boolean
  readonly newest: number
}

const writeCells = (to: ByteWriter, { buckets, cells }: Series<number>, form: CellsForm): void => {
  if (form.isListed) to.varint(buckets.length)
  let newer = form.newest
  for (let at = 0; at < buckets.length; at++) {
    const bucket = buckets[at] as number
    if (form.isTimed) to.varint(newer - bucket)
    if (form.isCounted) to.varint(cells[at] as number)
    newer = bucket
  }
}

export const readValues = <K extends Key>(from: ByteReader, form: ValuesForm<K>): Values<K> => {
  const length = from.varint()
  const newest = length > 0 && form.isTimed ? from.varint() : 0
  const cells = { ...form, newest }
  const keys: K[] = []
  const series: Series<number>[] = []
  for (let at = 0; at < length; at++) {
    keys.push(form.readKey(from, keys[at - 1]))
    series.push(readCells(from, cells))
  }
  return valuesOf(keys, series)
}

const readCells = (from: ByteReader, form: CellsForm): Series<number> => {
  const length = form.isListed ? from.varint() : 1
  const buckets: number[] = []
  const cells: number[] = []
  let newer = form.newest
  for (let at = 0; at < length; at++) {
    if (form.isTimed) newer -= from.varint()
    buckets.push(newer)
    cells.push(form.isCounted ? from.varint() : 1)
  }
  return { buckets, cells }
}

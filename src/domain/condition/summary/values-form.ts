// The binary form of values: each key after the one before it, each bucket as how much older than the newest.
import type { ByteReader, ByteWriter } from '../../bytes.ts'
import type { Series } from './series.ts'
import { type Key, type Values, valuesOf } from './values.ts'

export type ValuesForm<K extends Key, C> = {
  /** `before` is the key written before it. */
  readonly writeKey: (to: ByteWriter, key: K, before: K | undefined) => void
  readonly readKey: (from: ByteReader, before: K | undefined) => K
  /** Whether there is more than one bucket at all. */
  readonly isTimed: boolean
  /** Whether a value can have several of them. */
  readonly isListed: boolean
  readonly writeCell: (to: ByteWriter, cell: C) => void
  readonly readCell: (from: ByteReader) => C
}

/** How often a value was there. */
export const counted = {
  writeCell: (to: ByteWriter, count: number) => to.varint(count),
  readCell: (from: ByteReader) => from.varint(),
}

/** That it was there says all. */
export const uncounted = {
  writeCell: () => undefined,
  readCell: () => 1,
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

export const writeValues = <K extends Key, C>(
  to: ByteWriter,
  { keys, series, newest }: Values<K, C>,
  form: ValuesForm<K, C>,
): void => {
  to.varint(keys.length)
  if (keys.length > 0 && form.isTimed) to.varint(newest)
  const cells = { ...form, newest }
  for (let at = 0; at < keys.length; at++) {
    form.writeKey(to, keys[at] as K, keys[at - 1])
    writeCells(to, series[at] as Series<C>, cells)
  }
}

type CellsForm<C> = Pick<
  ValuesForm<never, C>,
  'isTimed' | 'isListed' | 'writeCell' | 'readCell'
> & {
  readonly newest: number
}

const writeCells = <C>(to: ByteWriter, { buckets, cells }: Series<C>, form: CellsForm<C>): void => {
  if (form.isListed) to.varint(buckets.length)
  let newer = form.newest
  for (let at = 0; at < buckets.length; at++) {
    const bucket = buckets[at] as number
    if (form.isTimed) to.varint(newer - bucket)
    form.writeCell(to, cells[at] as C)
    newer = bucket
  }
}

export const readValues = <K extends Key, C>(
  from: ByteReader,
  form: ValuesForm<K, C>,
): Values<K, C> => {
  const length = from.varint()
  const newest = length > 0 && form.isTimed ? from.varint() : 0
  const cells = { ...form, newest }
  const keys: K[] = []
  const series: Series<C>[] = []
  for (let at = 0; at < length; at++) {
    keys.push(form.readKey(from, keys[at - 1]))
    series.push(readCells(from, cells))
  }
  return valuesOf(keys, series)
}

const readCells = <C>(from: ByteReader, form: CellsForm<C>): Series<C> => {
  const length = form.isListed ? from.varint() : 1
  const buckets: number[] = []
  const cells: C[] = []
  let newer = form.newest
  for (let at = 0; at < length; at++) {
    if (form.isTimed) newer -= from.varint()
    buckets.push(newer)
    cells.push(form.readCell(from))
  }
  return { buckets, cells }
}

// The binary form of what is held of a sequence: every instant as how much older than the one before it.
import type { ByteReader, ByteWriter } from '../../bytes.ts'
import { type Chains, composite, type Held, type HeldValue } from './chain.ts'
import { readScalar, writeScalar } from './scalar.ts'
import type { SequenceSummary } from './sequence.ts'

const flags = { isLost: 1, isSettled: 2 }

export const writeSequence = (
  to: ByteWriter,
  { lists, settled, isLost }: SequenceSummary,
  chains: Chains,
): void => {
  to.varint((isLost ? flags.isLost : 0) + (settled >= 0 ? flags.isSettled : 0))
  const newest = Math.max(settled, ...lists.map((list) => list.at(-1)?.te ?? 0))
  to.varint(newest)
  if (settled >= 0) to.varint(newest - settled)
  for (let step = 0; step < lists.length; step++) {
    const list = lists[step] as readonly Held[]
    to.varint(list.length)
    let later = newest
    for (let at = list.length - 1; at >= 0; at--) {
      const { te, values } = list[at] as Held
      to.varint(later - te)
      later = te
      for (let place = 0; place < chains.widthOf(step); place++)
        writeValue(to, values[place] ?? null)
    }
  }
}

export const readSequence = (from: ByteReader, steps: number, chains: Chains): SequenceSummary => {
  const written = from.varint()
  const newest = from.varint()
  const isLost = (written & flags.isLost) !== 0
  const settled = (written & flags.isSettled) === 0 ? -1 : newest - from.varint()
  const lists: Held[][] = []
  for (let step = 0; step < steps; step++) {
    const list: Held[] = []
    let te = newest
    for (let left = from.varint(); left > 0; left--) {
      te -= from.varint()
      const values: HeldValue[] = []
      for (let place = 0; place < chains.widthOf(step); place++) values.push(readValue(from))
      list.push({ te, values })
    }
    lists.push(list.reverse())
  }
  return { lists, settled, isLost }
}

const tags = { missing: 0, composite: 1, scalar: 2 }

const writeValue = (to: ByteWriter, value: HeldValue): void => {
  if (value === null) to.varint(tags.missing)
  else if (typeof value === 'object') to.varint(tags.composite)
  else {
    to.varint(tags.scalar)
    writeScalar(to, value)
  }
}

const readValue = (from: ByteReader): HeldValue => {
  const tag = from.varint()
  if (tag === tags.missing) return null
  return tag === tags.composite ? composite : readScalar(from)
}

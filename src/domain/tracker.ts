// Which offsets of one partition are settled: the only thing that may move delivery's position.

/** An offset that still owes something to some destinations. */
export type Open = {
  readonly offset: number
  /** Destinations not settled yet. */
  left: number[]
  /** Destinations settled while others are not. */
  done: number[]
}

/** What a position row remembers; `bits` covers [next, next + length), a set bit is a settled offset. */
export type Settled = {
  readonly next: number
  readonly length: number
  readonly bits: Uint8Array
  readonly done: ReadonlyMap<number, readonly number[]>
}

export type Tracker = {
  /** Settled in an earlier life: neither the offset nor its destinations are owed again. */
  isSettled(offset: number): boolean
  /** Registers an offset, in ascending order; `null` when nothing is left to owe. */
  open(offset: number, destinationIds: readonly number[]): Open | null
  /** Everything below `until` has been seen. */
  see(until: number): void
  /** Up to where everything has been seen. */
  seen(): number
  /** Everything below `until` has its duplicates recorded, so the position may pass it. */
  secure(until: number): void
  settle(open: Open, destinationId: number): void
  /** Offsets between the lowest unsettled and the highest seen. */
  span(): number
  /** Bytes that destinations done under unsettled offsets take in the position row. */
  doneBytes(): number
  /** Ascends with every change, so that only changed positions are written. */
  version(): number
  snapshot(): Settled
}

/** So many settled ones are kept before it is worth letting them go. */
const spentMin = 1_024

const openBytes = 6
const destinationBytes = 4

export const nothingSettled = (next: number): Settled => ({
  next,
  length: 0,
  bits: new Uint8Array(0),
  done: new Map(),
})

/** `from` is the first offset that will be seen, at or above the resumed position. */
export const openTracker = (from: number, resumed: Settled): Tracker => {
  let opens: Open[] = []
  const resumedEnd = resumed.next + resumed.length
  let head = 0
  /** Settled ones at or behind the head. */
  let idle = 0
  let seen = from
  let secured = from
  let doneBytes = 0
  let version = 0
  const advance = () => {
    while (head < opens.length && opens[head]?.left.length === 0) {
      head += 1
      idle -= 1
    }
    const spent = head + idle
    if (spent < spentMin || spent * 2 < opens.length) return
    // One that stays open for hours must not make each snapshot pass by all that were settled behind it.
    opens = opens.filter(({ left }) => left.length > 0)
    head = 0
    idle = 0
  }
  const watermark = () => opens[head]?.offset ?? seen
  return {
    isSettled: (offset) =>
      offset >= resumed.next && offset < resumedEnd && isSet(resumed.bits, offset - resumed.next),
    open: (offset, destinationIds) => {
      const earlier = resumed.done.get(offset)
      const done = earlier?.filter((id) => destinationIds.includes(id)) ?? []
      const left = destinationIds.filter((id) => !done.includes(id))
      if (left.length === 0) return null
      const open = { offset, left, done }
      doneBytes += bytesOf(open)
      opens.push(open)
      return open
    },
    see: (until) => {
      seen = Math.max(seen, until)
      version += 1
    },
    seen: () => seen,
    secure: (until) => {
      secured = Math.max(secured, until)
      version += 1
    },
    settle: (open, destinationId) => {
      const at = open.left.indexOf(destinationId)
      if (at < 0) return
      doneBytes -= bytesOf(open)
      open.left.splice(at, 1)
      open.done.push(destinationId)
      if (open.left.length > 0) doneBytes += bytesOf(open)
      else idle += 1
      version += 1
      advance()
    },
    span: () => seen - watermark(),
    doneBytes: () => doneBytes,
    version: () => version,
    snapshot: () => {
      const next = Math.min(watermark(), Math.max(secured, from))
      const end = Math.max(Math.min(seen, secured), resumedEnd, next)
      return settledOf({ opens, head, seen, resumed, next, end })
    },
  }
}

const bytesOf = (open: Open) =>
  open.done.length === 0 ? 0 : openBytes + destinationBytes * open.done.length

type View = {
  readonly opens: readonly Open[]
  readonly head: number
  readonly seen: number
  readonly resumed: Settled
  readonly next: number
  readonly end: number
}

const settledOf = (view: View): Settled => {
  const { opens, head, seen, resumed, next, end } = view
  const length = end - next
  const bits = new Uint8Array(Math.ceil(length / 8)).fill(0xff)
  const done = new Map<number, readonly number[]>()
  for (let at = head; at < opens.length; at += 1) {
    const open = opens[at] as Open
    if (open.left.length === 0) continue
    // Beyond the end a crash forgets offsets that are done, so it must not remember parts of others.
    if (open.offset >= end) continue
    unset(bits, open.offset - next)
    if (open.done.length > 0) done.set(open.offset, [...open.done])
  }
  // What an earlier life settled above the offsets read again so far is still settled.
  for (let offset = Math.max(seen, next); offset < end; offset += 1)
    if (!isSet(resumed.bits, offset - resumed.next)) unset(bits, offset - next)
  for (const [offset, ids] of resumed.done) if (offset >= seen) done.set(offset, ids)
  return { next, length, bits, done }
}

const isSet = (bits: Uint8Array, at: number) => (((bits[at >> 3] ?? 0) >> (at & 7)) & 1) === 1

const unset = (bits: Uint8Array, at: number) => {
  bits[at >> 3] = (bits[at >> 3] ?? 0) & ~(1 << (at & 7))
}

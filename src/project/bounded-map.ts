// A map that forgets what was not used for long once it weighs too much.

export type BoundedMap<K, V> = {
  get(key: K): V | undefined
  /** Gets and forgets. */
  take(key: K): V | undefined
  set(key: K, value: V): void
  delete(key: K): void
}

type Options<K, V> = {
  readonly bytesMax: number
  readonly bytesOf: (key: K, value: V) => number
}

/**
 * Two generations of half the weight each: what is used moves to the young one, and when that is full
 * the old one is dropped whole. Evicting entry by entry costs a walk over the deleted ones each time.
 */
export const boundedMap = <K, V>({ bytesMax, bytesOf }: Options<K, V>): BoundedMap<K, V> => {
  let young = new Map<K, V>()
  let old = new Map<K, V>()
  let youngBytes = 0
  const set = (key: K, value: V) => {
    const bytes = bytesOf(key, value)
    if (youngBytes + bytes > bytesMax / 2) {
      old = young
      young = new Map()
      youngBytes = 0
    }
    if (bytes > bytesMax / 2) return
    old.delete(key)
    young.set(key, value)
    youngBytes += bytes
  }
  const take = (key: K): V | undefined => {
    const value = young.get(key) ?? old.get(key)
    if (value === undefined) return undefined
    // Its weight in the young one stays counted until that is old: it is set again soon, or gone.
    if (!young.delete(key)) old.delete(key)
    return value
  }
  return {
    get: (key) => {
      const held = young.get(key)
      if (held !== undefined) return held
      const value = old.get(key)
      if (value !== undefined) set(key, value)
      return value
    },
    take,
    set: (key, value) => {
      take(key)
      set(key, value)
    },
    delete: (key) => void take(key),
  }
}

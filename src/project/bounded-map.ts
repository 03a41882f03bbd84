// A map that forgets what was used longest ago once it weighs too much.

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

export const boundedMap = <K, V>({ bytesMax, bytesOf }: Options<K, V>): BoundedMap<K, V> => {
  const entries = new Map<K, { readonly value: V; readonly bytes: number }>()
  let bytes = 0
  const take = (key: K) => {
    const entry = entries.get(key)
    if (entry === undefined) return undefined
    entries.delete(key)
    bytes -= entry.bytes
    return entry
  }
  return {
    get: (key) => {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      // Maps keep insertion order: the first entry is the one used longest ago.
      entries.delete(key)
      entries.set(key, entry)
      return entry.value
    },
    take: (key) => take(key)?.value,
    set: (key, value) => {
      take(key)
      const weight = bytesOf(key, value)
      entries.set(key, { value, bytes: weight })
      bytes += weight
      for (const oldest of entries.keys()) {
        if (bytes <= bytesMax) break
        take(oldest)
      }
    },
    delete: (key) => void take(key),
  }
}

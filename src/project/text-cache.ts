// Numbers by a text, outside the heap: what was not asked for lately is forgotten once they take too much.
import { randomInt } from 'node:crypto'
import { openRing } from './ring.ts'

export type TextCache = {
  get(text: string): number | undefined
  set(text: string, value: number): void
  delete(text: string): void
}

/** Before its characters, of two bytes each: the number, and how many they are. */
const charsAt = 12
/** A number and a text of twenty characters. */
const entryBytes = 60

export const openTextCache = (bytesMax: number): TextCache => {
  const ring = openRing({ bytesMax, entryBytes })
  const values = new Float64Array(ring.buffer)
  const lengths = new Int32Array(ring.buffer)
  const chars = new Uint16Array(ring.buffer)
  const hashOf = textHash()
  let wanted = ''
  const isWanted = (place: number): boolean => {
    const { length } = wanted
    if (lengths[(place + 8) >> 2] !== length) return false
    const start = (place + charsAt) >> 1
    for (let at = 0; at < length; at++)
      if (chars[start + at] !== wanted.charCodeAt(at)) return false
    return true
  }
  const find = (text: string, hash: number): number => {
    wanted = text
    return ring.find(hash, isWanted)
  }
  const add = (text: string, hash: number, value: number): void => {
    const place = ring.add(hash, charsAt + text.length * 2)
    if (place < 0) return
    values[place >> 3] = value
    lengths[(place + 8) >> 2] = text.length
    const start = (place + charsAt) >> 1
    for (let at = 0; at < text.length; at++) chars[start + at] = text.charCodeAt(at)
  }
  return {
    get: (text) => {
      const hash = hashOf(text)
      const place = find(text, hash)
      if (place < 0) return undefined
      const value = values[place >> 3] as number
      if (ring.isOld(place)) {
        ring.remove(place)
        add(text, hash, value)
      }
      return value
    },
    set: (text, value) => {
      const hash = hashOf(text)
      const place = find(text, hash)
      if (place < 0) add(text, hash, value)
      else values[place >> 3] = value
    },
    delete: (text) => {
      const place = find(text, hashOf(text))
      if (place >= 0) ring.remove(place)
    },
  }
}

/** FNV-1a over its characters from a start nobody knows, its bits spread in the end as MurmurHash3 does. */
const textHash = () => {
  const start = randomInt(2 ** 32)
  return (text: string): number => {
    let hash = start
    for (let at = 0; at < text.length; at++)
      hash = Math.imul(hash ^ text.charCodeAt(at), 0x0100_0193)
    hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b)
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35)
    return hash ^ (hash >>> 16)
  }
}

// The chunked coding of an answer's body: its data, and where it ends.
import type { Told } from './answer-reader.ts'

export type Chunks = {
  /** Data goes to `take`. `excess`: it ended before these bytes did. */
  read(bytes: Buffer, take: (data: Buffer) => void): Told
}

const lf = 10
/** Of a chunk's size with its extensions, and of a trailer: neither means anything to us. */
const lineBytesMax = 1_024
const sizeLine = /^([\da-f]{1,8})(?:[\t ]*;.*)?$/i

/** `gap`: the line end behind a chunk's data. */
type At = 'size' | 'data' | 'gap' | 'trailer'

export const openChunks = (): Chunks => {
  let at: At = 'size'
  let left = 0
  let line = ''
  /** Takes one byte of a line; `null`: the line goes on. */
  const endOfLine = (byte: number): string | null => {
    if (byte !== lf) {
      line += String.fromCharCode(byte)
      return null
    }
    const ended = line
    line = ''
    return ended
  }
  /** What a line that ended says. */
  const next = (ended: string): Told => {
    if (!ended.endsWith('\r')) return 'malformed'
    const text = ended.slice(0, -1)
    if (at === 'trailer') return text === '' ? 'complete' : 'more'
    if (at === 'gap') {
      at = 'size'
      return text === '' ? 'more' : 'malformed'
    }
    const size = sizeLine.exec(text)?.[1]
    if (size === undefined) return 'malformed'
    left = Number.parseInt(size, 16)
    at = left === 0 ? 'trailer' : 'data'
    return 'more'
  }
  /** Takes what belongs to a chunk at the beginning of these bytes; how many that were. */
  const passData = (bytes: Buffer, take: (data: Buffer) => void): number => {
    const data = bytes.subarray(0, left)
    take(data)
    left -= data.length
    if (left === 0) at = 'gap'
    return data.length
  }
  const readByte = (byte: number): Told => {
    const ended = endOfLine(byte)
    if (line.length > lineBytesMax) return 'malformed'
    return ended === null ? 'more' : next(ended)
  }
  return {
    read: (bytes, take) => {
      let place = 0
      let told: Told = 'more'
      while (place < bytes.length && told === 'more') {
        if (at === 'data') place += passData(bytes.subarray(place), take)
        else {
          told = readByte(bytes[place] as number)
          place += 1
        }
      }
      return told === 'complete' && place < bytes.length ? 'excess' : told
    },
  }
}

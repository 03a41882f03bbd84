// The content of an input from where an import goes on, with what was read of it as it is stored.
import { createHash } from 'node:crypto'
import { decompressed } from '../import/content.ts'
import type { Input } from './import-input.ts'

export type Content = {
  /** As it is stored, compressed or not. */
  read(): number
  pass(bytes: number): Promise<void>
  /** What is found in its first bytes, of which more are read until it is; they stay where they are. */
  peek<R>(bytesMax: number, find: (held: Buffer, isAll: boolean) => R | null): Promise<R | null>
  /** The next bytes, of which no more than `kept` are given. */
  take(bytes: number, kept: number): Promise<Taken>
  rest(): AsyncIterable<Uint8Array>
  close(): Promise<void>
}

export type Taken = { readonly bytes: Buffer; readonly length: number; readonly digest: string }

export const openContent = (input: Input): Content => {
  let read = 0
  const counted = async function* () {
    for await (const piece of input.open()) {
      read += piece.length
      yield piece
    }
  }
  const pieces = decompressed(counted())
  let held: Uint8Array = new Uint8Array()
  /** At most so many bytes; none at the end. */
  const some = async (most: number): Promise<Uint8Array> => {
    if (held.length === 0) {
      const { done, value } = await pieces.next()
      if (done) return held
      held = value
    }
    const given = held.subarray(0, most)
    held = held.subarray(given.length)
    return given
  }
  const take = async (bytes: number, kept: number): Promise<Taken> => {
    const hash = createHash('sha256')
    const parts: Uint8Array[] = []
    let length = 0
    while (length < bytes) {
      const part = await some(bytes - length)
      if (part.length === 0) break
      if (length < kept) parts.push(part.subarray(0, kept - length))
      hash.update(part)
      length += part.length
    }
    return { bytes: Buffer.concat(parts), length, digest: hash.digest('hex') }
  }
  const peek: Content['peek'] = async (bytesMax, find) => {
    for (;;) {
      const { done, value } = held.length < bytesMax ? await pieces.next() : nothing
      if (!done) held = Buffer.concat([held, value])
      const found = find(Buffer.from(held), done === true)
      if (found !== null || done) return found
    }
  }
  return {
    read: () => read,
    peek,
    pass: async (bytes) => void (await take(bytes, 0)),
    take,
    rest: async function* () {
      if (held.length > 0) yield held
      yield* pieces
    },
    close: async () => void (await pieces.return(undefined)),
  }
}

const nothing = { done: true, value: undefined } as const

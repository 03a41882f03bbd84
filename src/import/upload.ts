// An import in one request: its body is decompressed, cut and taken as fast as the log takes it.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Chunk, Taken } from './chunk.ts'
import { decompressed, passOver } from './content.ts'
import { cutChunks } from './cut.ts'
import { importLimits } from './limits.ts'
import type { LineRejection } from './record.ts'
import type { Import } from './store.ts'
import { delimiterOf } from './table.ts'

export type Uploaded =
  | {
      readonly taken: Import
      /** The first ones of this request. */
      readonly rejected: readonly LineRejection[]
    }
  | Extract<Taken, { refused: unknown }>

type Take = (found: Import, chunk: Chunk) => Promise<Taken | 'busy'>

export const upload = async (
  take: Take,
  found: Import,
  content: AsyncIterable<Uint8Array>,
): Promise<Uploaded> => {
  const { format, mapping, place, line } = found
  const rejected: LineRejection[] = []
  let now = found
  let before: Promise<Taken> | null = null
  const settle = async (): Promise<Exclude<Uploaded, { taken: unknown }> | null> => {
    const taken = await before
    before = null
    if (taken === null) return null
    if ('refused' in taken) return taken
    now = taken.taken
    for (const one of taken.rejected)
      if (rejected.length < importLimits.answeredRejectedMax) rejected.push(one)
    return null
  }
  const rest = passOver(decompressed(content), place)
  const delimiter = format === 'ndjson' ? null : delimiterOf(format, mapping)
  for await (const chunk of cutChunks(rest, { place, line, delimiter })) {
    // The next one is judged while this one is appended; no more than these two are held.
    const taking = takePatiently(take, { found, chunk, before })
    taking.catch(() => undefined)
    const failed = await settle()
    if (failed !== null) return failed
    before = taking
  }
  return (await settle()) ?? { taken: now, rejected }
}

const busyMs = 500

type Taking = {
  readonly found: Import
  readonly chunk: Chunk
  /** The chunk before it, which may have to be asked again, too. */
  readonly before: Promise<Taken> | null
}

const takePatiently = async (take: Take, { found, chunk, before }: Taking): Promise<Taken> => {
  let isAfter = before === null
  for (;;) {
    const taken = await take(found, chunk)
    if (taken === 'busy') await sleep(busyMs)
    else if (isAfter || 'taken' in taken || taken.now.place >= chunk.place) return taken
    else {
      await before
      isAfter = true
    }
  }
}

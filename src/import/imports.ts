// Imports of past calls: made, taken chunk by chunk or as one upload, watched and cancelled.
import { type Chunk, type Taken, takeChunk } from './chunk.ts'
import type { ImportDeps } from './deps.ts'
import { importLimits } from './limits.ts'
import type { Ends, Import } from './store.ts'
import { openTurns } from './turns.ts'
import { type Uploaded, upload } from './upload.ts'

export type Imports = {
  /** `busy`: as many chunks are in hand as may be. Rejects when the log did not take it. */
  take(found: Import, chunk: Chunk): Promise<Taken | 'busy'>
  /** All of the content at once, from its first byte; what was imported of it before is passed over. */
  upload(found: Import, content: AsyncIterable<Uint8Array>): Promise<Uploaded>
}

export const openImports = (deps: ImportDeps): Imports => {
  const working = { ...deps, turns: openTurns(), ends: endsOf(deps) }
  let inHand = 0
  const take = async (found: Import, chunk: Chunk): Promise<Taken | 'busy'> => {
    if (inHand >= importLimits.chunksMax) return 'busy'
    inHand += 1
    try {
      return await takeChunk(working, found, chunk)
    } finally {
      inHand -= 1
    }
  }
  return { take, upload: (found, content) => upload(take, found, content) }
}

/** Where the log ended a moment ago: what is searched for what was appended since may be a little more. */
const endsOf = ({ history }: Pick<ImportDeps, 'history'>): (() => Promise<Ends>) => {
  let known: { readonly at: number; readonly ends: Promise<Ends> } | null = null
  const ask = async () => (await history.bounds('calls.import')).map(({ end }) => String(end))
  return () => {
    const at = performance.now()
    if (known === null || at - known.at > importLimits.endsMsMax) {
      const asked = { at, ends: ask() }
      known = asked
      asked.ends.catch(() => {
        if (known === asked) known = null
      })
    }
    return known.ends
  }
}

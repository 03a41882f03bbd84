// Writing segments anew without users who were erased: the new file, then the index, then the old file goes.
// A process that dies in between leaves either the old segment in force or the new one, and a file to sweep.
import { Fault } from '../fault.ts'
import { type Erasing, isErased } from './erasures.ts'
import { headOf } from './line.ts'
import { loadSegments, markErased, type SegmentRow, saveSegment } from './manifest.ts'
import { pathOf, readPath } from './name.ts'
import { segmentLines } from './read.ts'
import { openSegment } from './segment.ts'
import { holdsPosition, type Lane, type Stage } from './stage.ts'
import { noteTrouble } from './trouble.ts'

const segmentsAtOnce = 100

export const rewriteErased = async (stage: Stage, lane: Lane): Promise<void> => {
  const { deps } = stage
  const { erasures } = deps
  if (erasures === undefined) return
  const newest = await erasures.newest(deps.pool)
  if (newest === 0n) return
  const loaded = new Map<bigint, Erasing>()
  const since = async (after: bigint): Promise<Erasing> => {
    const known = loaded.get(after)
    if (known !== undefined) return known
    const erasing = await erasures.load(deps.pool, after)
    // Of segments that follow each other most have had the same erasures.
    loaded.clear()
    loaded.set(after, erasing)
    return erasing
  }
  let from = 0n
  for (;;) {
    const rows = await loadSegments(deps.pool, { ...lane, from, limit: segmentsAtOnce })
    for (const row of rows) {
      if (lane.over.aborted) return
      if (row.erasedTo >= newest) continue
      const work = { row, erasing: await since(row.erasedTo) }
      // One that cannot be read must not keep users in those after it.
      await rewrite(stage, lane, work).catch((error) => noteTrouble(stage, lane, error))
    }
    const last = rows.at(-1)
    if (last === undefined) return
    from = last.first + 1n
  }
}

type Work = { readonly row: SegmentRow; readonly erasing: Erasing }

const rewrite = async (stage: Stage, lane: Lane, { row, erasing }: Work): Promise<void> => {
  const { deps } = stage
  const erasedTo = erasing.upTo
  const found = await without(stage, lane, { row, erasing })
  if (found.erased === 0) {
    await deps.pool.transaction(async (tx) => {
      if (await holdsPosition(tx, lane)) await markErased(tx, { segment: row, erasedTo })
    })
    return
  }
  const compression = readPath(row.path)?.compression ?? deps.compression
  const name = { ...row, epoch: lane.epoch, generation: row.generation + 1, compression }
  const path = pathOf(name)
  lane.writing.add(path)
  try {
    await deps.store.put(path, found.bytes, lane.over)
    const isOurs = await deps.pool.transaction(async (tx) => {
      if (!(await holdsPosition(tx, lane))) return false
      const { summary, bytes, sha256 } = found
      const written = { path, bytes: bytes.length, sha256, erasedTo, writtenAt: deps.clock() }
      await saveSegment(tx, { ...name, ...summary, ...written })
      return true
    })
    if (!isOurs) return
  } finally {
    lane.writing.delete(path)
  }
  stage.meter.erased += found.erased
  await deps.store.remove(row.path, lane.over)
  deps.logger.info({ path, entries: found.erased }, 'segment.rewritten')
}

/** What the segment is without those users, in memory as a segment being written is. */
const without = async ({ deps, limits }: Stage, lane: Lane, { row, erasing }: Work) => {
  const { blockBytesMax } = limits
  const compression = readPath(row.path)?.compression ?? deps.compression
  const segment = openSegment({ first: row.first, openedAt: 0, compression, blockBytesMax })
  let erased = 0
  for await (const lines of segmentLines(deps.store, row, lane.over))
    for (const line of lines) {
      const head = headOf(line)
      if (isErased(erasing, head)) {
        erased += 1
        continue
      }
      segment.add(Buffer.concat([line, newline]), { offset: head.offset }, head)
      await segment.settle()
    }
  if (segment.summary.entries + erased !== row.entries)
    throw new Fault(
      'archive_damaged',
      `${row.path} holds another number of entries than its index says`,
    )
  return { ...(await segment.finish()), summary: segment.summary, erased }
}

const newline = Buffer.from('\n')

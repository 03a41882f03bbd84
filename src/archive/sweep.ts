// Removing what no index names: files of owners that died between writing one and saying so, and those of
// segments that were written anew or dropped. An earlier owner can name none of them any more: its epoch is over.
import { Fault } from '../fault.ts'
import { loadPaths } from './manifest.ts'
import { folderOf, readPath } from './name.ts'
import type { Lane, Stage } from './stage.ts'

export const sweep = async (stage: Stage, lane: Lane): Promise<void> => {
  const { deps } = stage
  const before = await loadPaths(deps.pool, lane)
  const found = new Set<string>()
  for await (const { path } of deps.store.list(folderOf(lane), lane.over)) found.add(path)
  // In this order: what was being written when it was found is in one of the two.
  const writing = new Set(lane.writing)
  const named = await loadPaths(deps.pool, lane)
  for (const path of found) {
    const whole = path.replace(/\.tmp$/, '')
    const epoch = readPath(whole)?.epoch
    if (named.has(path) || writing.has(whole) || epoch === undefined || epoch > lane.epoch) continue
    if (lane.over.aborted) return
    await deps.store.remove(path, lane.over)
    deps.logger.info({ path }, 'segment.swept')
  }
  // What came or went while it was looked for is not missing.
  const missing = [...before].filter((path) => named.has(path) && !found.has(path))
  if (missing.length > 0)
    throw new Fault(
      'archive_damaged',
      `${missing.length} segments that the index names are not in the archive, the first is ${missing[0]}: ` +
        'if it was moved, move all of it; else see "millrace archive check"',
    )
}

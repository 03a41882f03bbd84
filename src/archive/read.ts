// Reading a segment again: whole, and held to its checksum before a line of it is believed.
import { createHash } from 'node:crypto'
import { Fault } from '../fault.ts'
import { uncompressed } from './frames.ts'
import { linesOf } from './line.ts'
import type { SegmentRow } from './manifest.ts'
import { readPath } from './name.ts'
import type { Store } from './store.ts'

type Wanted = Pick<SegmentRow, 'path' | 'sha256'>

/** Its lines, some at a time. */
export async function* segmentLines(
  store: Store,
  { path, sha256 }: Wanted,
  signal?: AbortSignal,
): AsyncGenerator<Buffer[]> {
  const bytes = await store.get(path, signal)
  if (bytes === null)
    throw new Fault('archive_damaged', `the archive has no ${path}, which its index names`)
  if (!createHash('sha256').update(bytes).digest().equals(sha256))
    throw new Fault('archive_damaged', `${path} of the archive is not what was written`)
  yield* linesOf(uncompressed(readPath(path)?.compression ?? 'zstd', bytes))
}

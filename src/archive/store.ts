// Where segments are kept: a folder or an S3-compatible store, by the same few promises.
import { openFolder } from './folder.ts'
import type { Place } from './place.ts'
import { type Credentials, openBucket, type S3Limits } from './s3.ts'

export type Stored = { readonly path: string; readonly bytes: number }

/**
 * - `put` is atomic and durable on resolve: a reader finds all of it or nothing, whatever dies when.
 * - Every call is bounded in time and in tries; what it rejects with may be tried again.
 * - `get` answers `null` and `remove` nothing for what is not there.
 */
export type Store = {
  put(path: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void>
  get(path: string, signal?: AbortSignal): Promise<Buffer | null>
  /** What was put below the folder, and what a `put` that was cut off left there. */
  list(folder: string, signal?: AbortSignal): AsyncIterable<Stored>
  remove(path: string, signal?: AbortSignal): Promise<void>
}

type Options = {
  readonly place: Place
  readonly credentials: Credentials | null
  readonly limits?: Partial<S3Limits>
}

export const openStore = ({ place, credentials, limits }: Options): Store =>
  place.type === 'folder' ? openFolder(place.path) : openBucket({ place, credentials, limits })

// Sends chunks of an import, each again and again until it is known what became of it.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Chunk } from '../import/chunk.ts'
import type { LineRejection } from '../import/record.ts'
import { type Admin, failing } from './client.ts'
import type { Import } from './import-one.ts'

export type Answered = { readonly import: Import; readonly rejected: readonly LineRejection[] }

export type Sender = (chunk: Chunk) => Promise<Answered>

/** So long a server may be away, or busy, before the command gives up: what it sent stays. */
const patienceMs = 600_000
const pauseMsMin = 100
const pauseMsMax = 5_000

type Tried = Answered | { readonly again: string }

export const openSender =
  (admin: Admin, importId: number): Sender =>
  async (chunk) => {
    const startedAt = performance.now()
    for (let pauseMs = pauseMsMin; ; pauseMs = Math.min(pauseMsMax, pauseMs * 2)) {
      const tried = await attempt(admin, importId, chunk)
      if ('import' in tried) return tried
      if (performance.now() - startedAt > patienceMs)
        throw failing([
          `import ${importId} does not go on: ${tried.again}`,
          'run the same command again to go on from there',
        ])
      await sleep(pauseMs)
    }
  }

const attempt = async (admin: Admin, importId: number, chunk: Chunk): Promise<Tried> => {
  const query = new URLSearchParams({
    place: String(chunk.place),
    line: String(chunk.line),
    ...(chunk.skipped > 0 ? { skip: String(chunk.skipped) } : {}),
    ...(chunk.isLast ? { last: 'true' } : {}),
  })
  const path = `/admin/v1/imports/${importId}/chunks?${query}`
  try {
    const response = await fetch(admin.url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${admin.token}`,
        'content-type': 'application/octet-stream',
      },
      body: new Uint8Array(chunk.bytes),
    })
    const answer = (await response.json()) as Answered & Refused
    if (response.ok) return answer
    return await refused(admin, { importId, chunk, status: response.status, answer })
  } catch (error) {
    if ((error as { failure?: unknown }).failure) throw error
    return { again: (error as Error).message }
  }
}

type Refused = { readonly error?: { readonly code: string; readonly message: string } }

type Refusal = {
  readonly importId: number
  readonly chunk: Chunk
  readonly status: number
  readonly answer: Refused
}

const refused = async (admin: Admin, refusal: Refusal): Promise<{ readonly again: string }> => {
  const { code = '', message = `HTTP ${refusal.status}` } = refusal.answer.error ?? {}
  if (refusal.status >= 500 || refusal.status === 429) return { again: message }
  // The chunk before it is on its way still, or again.
  if (code === 'import_moved' && (await isBefore(admin, refusal))) return { again: message }
  throw failing([
    message,
    ...(code === 'import_moved' ? ['another command is importing the same content'] : []),
  ])
}

const isBefore = async (admin: Admin, { importId, chunk }: Refusal): Promise<boolean> => {
  const response = await fetch(`${admin.url}/admin/v1/imports/${importId}`, {
    headers: { authorization: `Bearer ${admin.token}` },
  })
  const { place } = (await response.json()) as Import
  return response.ok && place <= chunk.place
}

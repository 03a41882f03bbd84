// The end of a request: what was swept is noted, the notices go out, and nothing but hashes stays.
import type { Connection } from '../postgres/sql.ts'
import type { EraseDeps } from './deps.ts'
import { loadProfiles, noticesOf, saveNotices } from './notice-store.ts'
import { endRequest, lockRequest, moveRequest, type OpenRequest } from './request-store.ts'
import type { Swept } from './sweep.ts'

/** After the first sweep a request waits out the rounds in flight; the second one ends it. */
export const passOn = (
  deps: EraseDeps,
  { id, step }: OpenRequest,
  swept: Swept,
): Promise<boolean> =>
  deps.pool.transaction(async (tx) => {
    const request = await lockRequest(tx, id)
    // Another process was faster.
    if (request === null || request.step !== step) return false
    await noteSwept(tx, id, swept)
    if (step === 'erasing') {
      await moveRequest(tx, { id, step: 'waiting', at: deps.clock() })
      return true
    }
    const profiles = await loadProfiles(tx, id)
    const configuration = deps.live.now()
    await saveNotices(tx, noticesOf({ request, profiles, configuration }), { request })
    await endRequest(tx, { id, at: deps.clock(), reason: null })
    return true
  })

/** Of requests swept together each says what was found of all of them. */
const noteSwept = async (tx: Connection, id: number, swept: Swept): Promise<void> => {
  await tx.query(
    `update deletion_request r set stores = r.stores || coalesce((
       select jsonb_object_agg(s.name, s.rows + coalesce((r.stores ->> s.name)::int, 0))
         from unnest($2::text[], $3::int[]) as s(name, rows)), '{}')
      where r.id = $1`,
    [id, Object.keys(swept), Object.values(swept)],
  )
}

// From a request to orders in the log: its suppressions are in force everywhere before the first is appended.
import { orderOf } from '../domain/erasure.ts'
import { isBlocked } from '../domain/identity.ts'
import { logKey } from '../domain/message.ts'
import type { Connection, Pool } from '../postgres/sql.ts'
import type { EraseDeps } from './deps.ts'
import { recordRequest } from './record.ts'
import {
  endRequest,
  hasStrangers,
  loadUnordered,
  lockRequest,
  moveRequest,
  type OpenRequest,
} from './request-store.ts'
import { acknowledgedVersion } from './suppression-store.ts'

/** One step further, if it can go on: whether it did. */
export const takeStep = (deps: EraseDeps, id: number): Promise<boolean> =>
  deps.pool.transaction(async (tx) => {
    const request = await lockRequest(tx, id)
    if (request === null) return false
    if (request.step === 'recorded') return order(tx, deps, request)
    if (request.step === 'ordered') return lookForOrdered(tx, deps, request)
    return false
  })

const order = async (tx: Connection, deps: EraseDeps, request: OpenRequest): Promise<boolean> => {
  const { id, createdAt, workspaceId, kind } = request
  const at = deps.clock()
  if (request.suppressionVersion === null) {
    const recorded = await recordRequest(tx, request)
    if (recorded === 'suppressions_full') await endRequest(tx, { id, at, reason: recorded })
    return true
  }
  if (!(await isInForce(tx, deps, request.suppressionVersion))) return false
  if (kind === 'suppress_only') {
    await moveRequest(tx, { id, step: 'erasing', at })
    return true
  }
  if (kind === 'unsuppress') {
    await endRequest(tx, { id, at, reason: null })
    return true
  }
  await passBatches(deps.pool)
  const subjects = await loadUnordered(tx, id)
  const heard = subjects.filter(({ value }) => !isBlocked(value))
  const orders = heard.map((subject) =>
    orderOf({ ...subject, requestId: id, workspaceId, createdAt }),
  )
  // Appended again after a crash, the second ones are duplicates of the first.
  for (let next = 0; next < orders.length; next += deps.limits.ordersMax)
    await deps.appender.append(
      'calls',
      orders.slice(next, next + deps.limits.ordersMax).map((message) => ({
        key: logKey(message),
        value: deps.codecs.call.encode(message),
      })),
    )
  if (heard.length < subjects.length)
    await passOver(
      tx,
      id,
      subjects.filter(({ value }) => isBlocked(value)),
    )
  await moveRequest(tx, { id, step: 'ordered', at })
  return true
}

/** Those that were on their way when a request was swept first. */
export const haveRoundsEnded = (
  { clock, limits }: EraseDeps,
  { erasedAt }: Pick<OpenRequest, 'erasedAt'>,
): boolean => erasedAt !== null && clock().getTime() >= erasedAt.getTime() + limits.roundMs

/** Names that nobody has: no profile is theirs. */
const passOver = (tx: Connection, id: number, subjects: readonly { readonly n: number }[]) =>
  tx.query('update deletion_subject set log_offset = -1 where request_id = $1 and n = any($2)', [
    id,
    subjects.map(({ n }) => n),
  ])

/** A batch that was decided before the suppressions were in force is committed now: each holds its positions. */
const passBatches = (pool: Pool) =>
  pool.transaction((tx) =>
    tx.query(
      `select from position where reader = 'project' order by topic, partition for no key update`,
    ),
  )

/** In every process that lives; none may live but those that read this. */
const isInForce = async (
  tx: Connection,
  { clock, limits }: EraseDeps,
  version: bigint,
): Promise<boolean> => {
  const aliveSince = new Date(clock().getTime() - limits.aliveMs)
  const acknowledged = await acknowledgedVersion(tx, aliveSince)
  return acknowledged === null || acknowledged >= version
}

/** The projector has come past all orders, unless it met ids that nobody knew of. */
const lookForOrdered = async (
  tx: Connection,
  { clock }: EraseDeps,
  request: OpenRequest,
): Promise<boolean> => {
  const { id } = request
  if ((await loadUnordered(tx, id)).length > 0) return false
  if (await hasStrangers(tx, id)) {
    await recordRequest(tx, request)
    await moveRequest(tx, { id, step: 'recorded', at: clock() })
  } else await moveRequest(tx, { id, step: 'erasing', at: clock() })
  return true
}

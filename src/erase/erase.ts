// The erase stage: brings deletion requests from received to finished; every step is in Postgres, so a killed one goes on.
import { type Bell, hangBell } from '../bell.ts'
import type { Running } from '../running.ts'
import type { EraseDeps } from './deps.ts'
import { passOn } from './finish.ts'
import { type EraseLimits, eraseLimits } from './limits.ts'
import { haveRoundsEnded, takeStep } from './order.ts'
import { erases } from './request.ts'
import { loadOpen, type OpenRequest } from './request-store.ts'
import { sweep, sweepSuppressed } from './sweep.ts'

type StartDeps = Omit<EraseDeps, 'limits'> & { readonly limits?: Partial<EraseLimits> }

export const startErase = (start: StartDeps): Running => {
  const deps: EraseDeps = { ...start, limits: { ...eraseLimits, ...start.limits } }
  const stopping = new AbortController()
  const done = serve(deps, hangBell(), stopping.signal)
  done.catch(() => undefined)
  return {
    stop: () => {
      stopping.abort()
      return done
    },
    done,
  }
}

/** A failure is tried again: a request is an obligation, and each of its steps can be repeated. */
const serve = async (deps: EraseDeps, bell: Bell, stopping: AbortSignal): Promise<void> => {
  const { pollMs, pauseMaxMs } = deps.limits
  let pauseMs = pollMs
  while (!stopping.aborted) {
    try {
      const moved = await erasePass(deps, stopping)
      pauseMs = moved ? 0 : pollMs
    } catch (error) {
      deps.logger.error({ err: error }, 'erasure.failed')
      pauseMs = Math.min(Math.max(pauseMs, pollMs) * 2, pauseMaxMs)
    }
    if (pauseMs > 0) await bell.wait(pauseMs, stopping)
  }
}

/** Whether any request came further. */
export const erasePass = async (deps: EraseDeps, stopping?: AbortSignal): Promise<boolean> => {
  const { pool, limits } = deps
  let moved = false
  for (const { id, step } of await loadOpen(pool, limits.requestsMax)) {
    if (stopping?.aborted) return moved
    if (step === 'recorded' || step === 'ordered') moved = (await takeStep(deps, id)) || moved
  }
  const due = (await loadOpen(pool, limits.requestsMax)).filter((each) => isDue(deps, each))
  const erasing = due.filter(({ kind }) => erases(kind))
  const suppressing = due.filter(({ kind }) => !erases(kind))
  for (const each of [erasing, suppressing]) {
    if (stopping?.aborted) return moved
    moved = (await sweepTogether(deps, fewOf(each, limits.idsMax))) || moved
  }
  return moved
}

/** Those that erase, or those that suppress: in one reading, which no transaction waits for. */
const sweepTogether = async (
  deps: EraseDeps,
  requests: readonly OpenRequest[],
): Promise<boolean> => {
  const [first] = requests
  if (first === undefined) return false
  const isErasing = erases(first.kind)
  const swept = isErasing ? await sweep(deps, requests) : await sweepSuppressed(deps, requests)
  if (swept === null) return false
  let moved = false
  for (const request of requests) {
    if (!(await passOn(deps, request, swept))) continue
    moved = true
    if (isErasing && request.step === 'waiting') tellEnd(deps, request)
  }
  return moved
}

/** So many that their ids can be held at once, and one at least. */
const fewOf = (requests: readonly OpenRequest[], idsMax: number): readonly OpenRequest[] => {
  let ids = 0
  return requests.filter((request, at) => {
    ids += request.ids
    return at === 0 || ids <= idsMax
  })
}

/** With what is swept: those that have just come so far, and those whose rounds have ended. */
const isDue = (deps: EraseDeps, request: OpenRequest): boolean =>
  request.step === 'erasing' || (request.step === 'waiting' && haveRoundsEnded(deps, request))

const tellEnd = ({ clock, logger, ended }: EraseDeps, { id, createdAt }: OpenRequest): void => {
  const seconds = Math.max(0, (clock().getTime() - createdAt.getTime()) / 1_000)
  ended?.('finished', seconds)
  logger.info({ deletionId: id, seconds }, 'deletion.finished')
}

// Receivers that remember everything: who succeeded when, in which order, and what came again because of a kill.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { isFixedPoint } from '../support/receiver.ts'

/** How a destination answers: a status, after so long. */
export type Manner = () => { readonly status: number; readonly afterMs: number }

/** A request that was, or would have been, answered 2xx. */
type Success = {
  readonly pair: string
  readonly at: number
  endedAt: number | null
  /** The one before it of the same pair. */
  readonly before: Success | null
}

/** Something that makes delivery forget, and since when what was settled was in no position. */
export type Blow = { readonly at: number; readonly settledAt: number }

/** What came again because of a blow: of all that were under way, and those answered shortly before it. */
export type Damage = Blow & {
  readonly duplicates: number
  readonly inFlight: number
  /** Answered within an interval of positions before it. */
  readonly lately: number
  /** Answered since the last position. */
  readonly unwritten: number
  /** Of those that had been answered the one answered longest before the blow: so long before. */
  readonly oldestMs: number
}

export type Seen = ReturnType<typeof openSeen>

/** One server for all destinations; a chain is a destination and a user, whose numbers must first come in order. */
export const openSeen = (manners: readonly Manner[]) => {
  const successes: Success[] = []
  const last = new Map<string, Success>()
  const taken = new Set<string>()
  const chains = new Map<string, number[]>()
  const outOfOrder: string[] = []
  const unstable: string[] = []
  let requests = 0
  /** The first time a message comes, all before it in its chain must have been taken. */
  const checkOrder = (destination: number, userId: string, n: number) => {
    const key = `${destination} ${userId}`
    const known = chains.get(key) ?? []
    chains.set(key, known)
    if (known.includes(n)) return
    known.push(n)
    for (const before of known)
      if (before < n && !taken.has(`${destination} ${before}`))
        outOfOrder.push(`${key}: ${n} while ${before} is not settled`)
      else if (before > n) outOfOrder.push(`${key}: ${n} first after ${before}`)
  }
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    response.on('error', () => undefined)
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer)
    } catch {
      // Its sender was killed before it was whole.
      return
    }
    requests += 1
    const body = Buffer.concat(chunks)
    if (!isFixedPoint(body)) unstable.push(body.toString())
    const destination = Number(request.url?.slice(1))
    const { userId, properties } = JSON.parse(body.toString())
    const pair = `${destination} ${properties.n}`
    checkOrder(destination, userId, properties.n)
    const { status, afterMs } = (manners[destination - 1] as Manner)()
    const before = last.get(pair) ?? null
    const success: Success = { pair, at: performance.now(), endedAt: null, before }
    if (status === 200) {
      successes.push(success)
      last.set(pair, success)
    }
    if (afterMs > 0) await sleep(afterMs)
    if (response.destroyed) return
    if (status === 200) {
      success.endedAt = performance.now()
      taken.add(pair)
    }
    response.writeHead(status).end()
  })
  return {
    outOfOrder,
    unstable,
    listen: () =>
      new Promise<number>((resolve) =>
        server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)),
      ),
    pairs: () => taken.size,
    isTaken: (destination: number, n: number) => taken.has(`${destination} ${n}`),
    requests: () => requests,
    damages: (blows: readonly Blow[], intervalMs: number) =>
      blows.map((blow, index) =>
        damageOf(successes, { blow, from: blows[index - 1]?.at, intervalMs }),
      ),
    /** Repeats of what succeeded after this. */
    repeatsSince: (time: number) =>
      successes.filter(({ before }) => before && (before.endedAt ?? before.at) > time).length,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

type Judging = {
  readonly blow: Blow
  readonly from: number | undefined
  readonly intervalMs: number
}

/** Each repeat belongs to the blow that came next after the success before it. */
const damageOf = (
  successes: readonly Success[],
  { blow, from = Number.NEGATIVE_INFINITY, intervalMs }: Judging,
): Damage => {
  const { at, settledAt } = blow
  const own = ({ at: began, endedAt }: Success) =>
    (endedAt ?? began) > from && (endedAt ?? began) <= at
  const repeated = successes.flatMap(({ before }) => (before && own(before) ? [before] : []))
  const ages = repeated.flatMap(({ endedAt }) => (endedAt === null ? [] : [at - endedAt]))
  const mine = successes.filter(own)
  const answeredSince = (time: number) =>
    mine.filter(({ endedAt }) => endedAt !== null && endedAt > time).length
  return {
    ...blow,
    duplicates: repeated.length,
    inFlight: mine.filter(({ endedAt }) => endedAt === null).length,
    lately: answeredSince(at - intervalMs),
    unwritten: answeredSince(settledAt),
    oldestMs: Math.max(0, ...ages),
  }
}

// One server that is the receivers of thousands of destinations, which fail together and are well again together.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isFixedPoint } from '../support/receiver.ts'
import type { Blow } from './seen.ts'

type Options = {
  /** Destinations numbered from 1 to this fail until they are healed. */
  readonly sick: number
  readonly healthy: number
  /** How long each answer takes. */
  readonly answerMs: number
}

export type Herd = Awaited<ReturnType<typeof openHerd>>

/** More requests of a destination at once than a ramp that begins with one may bring. */
type Excess = { readonly by: number; readonly what: string }

/** When a request came, and when it was answered with success. */
type Success = { readonly at: number; endedAt: number }

export const openHerd = async ({ sick, healthy, answerMs }: Options) => {
  const inFlight = new Int32Array(sick + healthy + 1)
  const successes = new Int32Array(sick + healthy + 1)
  const refusals = new Int32Array(sick + healthy + 1)
  const taken = new Set<string>()
  const stampede: Excess[] = []
  const all: Success[] = []
  const perSecond = new Map<number, number>()
  const seen = { repeats: 0, failures: 0, unstable: 0, sickInFlight: 0, sickInFlightMax: 0 }
  let isHealed = false
  let arrived: (destination: number, n: number) => void = () => undefined
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    response.on('error', () => undefined)
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer)
    } catch {
      // Its sender gave it up before it was whole.
      return
    }
    const body = Buffer.concat(chunks)
    if (!isFixedPoint(body)) seen.unstable += 1
    const destination = Number(request.url?.slice(1))
    const isSick = destination <= sick
    const { n } = JSON.parse(body.toString()).properties
    const isWell = isHealed || !isSick
    arrived(destination, n)
    inFlight[destination] = (inFlight[destination] ?? 0) + 1
    if (isSick && isHealed) {
      // A ramp begins with one, and doubles when as many succeeded as it had.
      const atOnce = inFlight[destination] as number
      const borne = (successes[destination] ?? 0) + 1
      if (atOnce > borne)
        stampede.push({
          by: atOnce - borne,
          what: `${atOnce} at once to ${destination}, which took ${borne - 1} and refused ${refusals[destination]}`,
        })
      seen.sickInFlight += 1
      seen.sickInFlightMax = Math.max(seen.sickInFlightMax, seen.sickInFlight)
    }
    const isCounted = isSick && isHealed
    const success: Success = { at: performance.now(), endedAt: Number.POSITIVE_INFINITY }
    if (isWell) all.push(success)
    let isOver = false
    const end = () => {
      isOver = true
      inFlight[destination] = (inFlight[destination] ?? 0) - 1
      if (isCounted) seen.sickInFlight -= 1
    }
    // Its sender gave it up: on a machine that hung for seconds.
    response.on('close', () => {
      if (!isOver) end()
    })
    setTimeout(() => {
      if (isOver) return
      end()
      if (isWell) {
        success.endedAt = performance.now()
        const pair = `${destination} ${n}`
        if (taken.has(pair)) seen.repeats += 1
        taken.add(pair)
        if (isSick) {
          successes[destination] = (successes[destination] ?? 0) + 1
          const second = Math.floor(performance.now() / 1_000)
          perSecond.set(second, (perSecond.get(second) ?? 0) + 1)
        }
      } else {
        seen.failures += 1
        refusals[destination] = (refusals[destination] ?? 0) + 1
      }
      response.writeHead(isWell ? 200 : 503).end()
    }, answerMs)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 4_096, () => resolve()))
  const { port } = server.address() as AddressInfo
  return {
    seen,
    /** Of these, where so many requests were given up that may still have been under way. */
    stampede: (unheard: number) =>
      stampede.filter(({ by }) => by > unheard).map(({ what }) => what),
    perSecond,
    /** What may come again because partitions were lost: under way then, or answered since the last position. */
    exposed: (losses: readonly Blow[]): number =>
      all.filter((one) =>
        losses.some(({ at, settledAt }) => one.at <= at && one.endedAt > settledAt),
      ).length,
    /** Each has a host of its own, and so connections of its own. */
    targets: Array.from({ length: sick + healthy }, (_, at) => ({
      url: `http://d${at + 1}.chaos.test:${port}/${at + 1}`,
      sourceId: at < sick ? 1 : 2,
    })),
    /** Pairs of sick destinations that were delivered. */
    delivered: () => successes.subarray(1, sick + 1).reduce((total, some) => total + some, 0),
    taken: () => taken.size,
    heal: () => {
      isHealed = true
    },
    onArrival: (listener: typeof arrived) => {
      arrived = listener
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

// Receivers of the benches of delivery under trouble, in a process of their own: well, slow, flapping, dead or
// healing ones. Of those that are well it keeps how long each call took from its append.

import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { answerParent } from './deliver-processes.ts'
import { nowUs, stampLength, stampName } from './deliver-timed-calls.ts'

export type Kind = 'well' | 'slow' | 'flapping' | 'dead' | 'healing'

export type Group = { readonly kind: Kind; readonly ports: number; readonly delayMs: number }

/** `reset`: begins to count anew. `heal`: from now on those that are healing say 200. */
export type Question = { readonly type: 'count' | 'reset' | 'heal' }

export type Counts = {
  /** Requests complete, by the receivers that are well and by those that are healing. */
  readonly well: number
  readonly healing: number
  /** Of those healing: at a time, at most. */
  readonly healingInFlight: number
  /** From append to the last byte received, of those that are well. */
  readonly p50Us: number
  readonly p99Us: number
}

const flapMs = 5_000
const groups = JSON.parse(process.argv[2] ?? '[]') as readonly Group[]
const ok = Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
const unavailable = Buffer.from('HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n')
/** By tenths of a millisecond; the last one holds everything longer. */
const buckets = new Uint32Array(600_000)
let isHealed = false
let well = 0
let healing = 0
let inFlight = 0
let inFlightMost = 0

const answerOf = (kind: Kind): Buffer => {
  if (kind === 'healing') return isHealed ? ok : unavailable
  const isDown = kind === 'flapping' && Math.floor(performance.now() / flapMs) % 2 === 1
  return isDown ? unavailable : ok
}

const took = (request: Buffer): void => {
  const at = request.indexOf(stampName) + stampName.length
  const appendedUs = Number(request.toString('latin1', at, at + stampLength))
  const tenths = Math.max(0, Math.round((nowUs() - appendedUs) / 100))
  const bucket = Math.min(buckets.length - 1, tenths)
  buckets[bucket] = (buckets[bucket] as number) + 1
}

const received = ({ kind, delayMs }: Group, socket: Socket, request: Buffer): void => {
  if (kind === 'well') {
    well += 1
    took(request)
  }
  const isHealing = kind === 'healing'
  if (isHealing) {
    healing += 1
    inFlight += 1
    inFlightMost = Math.max(inFlightMost, inFlight)
  }
  const answer = answerOf(kind)
  setTimeout(() => {
    if (isHealing) inFlight -= 1
    socket.write(answer)
  }, delayMs)
}

/** Requests on one socket come one after the other; each counts when its body is complete. */
const serve = (group: Group) => (socket: Socket) => {
  let kept = Buffer.alloc(0)
  socket.setNoDelay(true)
  socket.on('error', () => undefined)
  socket.on('data', (chunk) => {
    kept = kept.length === 0 ? chunk : Buffer.concat([kept, chunk])
    const end = kept.indexOf('\r\n\r\n')
    if (end < 0) return
    const length = Number(/content-length: (\d+)/i.exec(kept.toString('latin1', 0, end))?.[1])
    if (kept.length < end + 4 + length) return
    const request = kept.subarray(0, end + 4 + length)
    kept = kept.subarray(request.length)
    received(group, socket, request)
  })
}

const open = async (group: Group): Promise<Server> => {
  const server = createServer(serve(group))
  server.listen({ port: 0, host: '127.0.0.1', backlog: 2_048 })
  await once(server, 'listening')
  return server
}

const urls: string[][] = []
for (const group of groups) {
  const own: string[] = []
  for (let at = 0; at < group.ports; at += 1) {
    const server = await open(group)
    own.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`)
    // Nobody listens there any more: connections are refused.
    if (group.kind === 'dead') server.close()
  }
  urls.push(own)
}

/** In microseconds. */
const quantile = (share: number): number => {
  const wanted = Math.ceil(well * share)
  let seen = 0
  for (let at = 0; at < buckets.length; at += 1) {
    seen += buckets[at] as number
    if (seen >= wanted) return at * 100
  }
  return Number.NaN
}

answerParent<Question>(({ type }) => {
  if (type === 'heal') isHealed = true
  const counts: Counts = {
    well,
    healing,
    healingInFlight: inFlightMost,
    p50Us: well === 0 ? Number.NaN : quantile(0.5),
    p99Us: well === 0 ? Number.NaN : quantile(0.99),
  }
  if (type === 'reset') {
    buckets.fill(0)
    well = 0
    healing = 0
    inFlightMost = inFlight
  }
  return counts
})
process.send?.({ urls })

// A TCP proxy in front of a Kafka broker that can be cut off, frozen, or made to lose produce answers.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

export type KafkaProxy = {
  /** Where clients connect; the addresses in the broker's answers lead here too. */
  readonly brokers: readonly string[]
  /** Called for each answer to a produce request: `true` loses it, and its connection with it. */
  loseAnswers(lose: () => boolean): void
  /** Produce requests seen, and the most of them that waited for their answers at one time. */
  readonly produced: () => { readonly requests: number; readonly mostInFlight: number }
  /** Closes every connection and accepts none, until healed. */
  cut(): void
  /** Keeps connections open and lets nothing through, until healed. */
  freeze(): void
  heal(): void
  close(): Promise<void>
}

type Mode = 'open' | 'cut' | 'frozen'

type State = {
  mode: Mode
  lose: () => boolean
  requests: number
  inFlight: number
  mostInFlight: number
  readonly sockets: Set<Socket>
  /** The brokers' addresses as their answers spell them, and what to say instead. */
  readonly renames: { readonly from: Buffer; readonly to: Buffer }[]
}

export const openKafkaProxy = async (brokers: readonly string[]): Promise<KafkaProxy> => {
  const state: State = {
    mode: 'open',
    lose: () => false,
    requests: 0,
    inFlight: 0,
    mostInFlight: 0,
    sockets: new Set(),
    renames: [],
  }
  const servers: Server[] = []
  const addresses: string[] = []
  for (const broker of brokers) {
    const [host = '', port = ''] = broker.split(':')
    const server = createServer((client) => serve(state, client, { host, port: Number(port) }))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const own = (server.address() as AddressInfo).port
    state.renames.push({ from: spelled(host, Number(port)), to: spelled('127.0.0.1', own) })
    servers.push(server)
    addresses.push(`127.0.0.1:${own}`)
  }
  const drop = () => {
    for (const socket of state.sockets) socket.destroy()
  }
  const enter = (mode: Mode) => {
    state.mode = mode
    if (mode !== 'frozen') drop()
  }
  return {
    brokers: addresses,
    loseAnswers: (lose) => {
      state.lose = lose
    },
    produced: () => ({ requests: state.requests, mostInFlight: state.mostInFlight }),
    cut: () => enter('cut'),
    freeze: () => enter('frozen'),
    heal: () => enter('open'),
    close: async () => {
      drop()
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
    },
  }
}

/** A host and a port as Kafka's answers hold them: a string with its length, then 32 bits. */
const spelled = (host: string, port: number): Buffer => {
  const bytes = Buffer.alloc(2 + host.length + 4)
  bytes.writeInt16BE(host.length, 0)
  bytes.write(host, 2)
  bytes.writeInt32BE(port, 2 + host.length)
  return bytes
}

const metadataKey = 3
const findCoordinatorKey = 10
const produceKey = 0

const serve = (
  state: State,
  client: Socket,
  target: { readonly host: string; readonly port: number },
) => {
  if (state.mode === 'cut') return void client.destroy()
  client.pause()
  const broker = connect(target, () => client.resume())
  const keys = new Map<number, number>()
  const pair = [client, broker]
  for (const socket of pair) {
    state.sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => undefined)
    socket.once('close', () => {
      state.sockets.delete(socket)
      for (const other of pair) other.destroy()
    })
  }
  client.on(
    'data',
    framed((frame) => {
      const key = frame.readInt16BE(4)
      keys.set(frame.readInt32BE(8), key)
      if (key === produceKey) {
        state.requests++
        state.inFlight++
        state.mostInFlight = Math.max(state.mostInFlight, state.inFlight)
      }
      if (state.mode === 'open') broker.write(frame)
    }),
  )
  broker.on(
    'data',
    framed((frame) => {
      const correlation = frame.readInt32BE(4)
      const key = keys.get(correlation)
      keys.delete(correlation)
      if (key === produceKey) state.inFlight--
      const named = key === metadataKey || key === findCoordinatorKey
      if (state.mode !== 'open') return
      if (key === produceKey && state.lose()) client.destroy()
      else client.write(named ? renamed(state, frame) : frame)
    }),
  )
}

const framed = (take: (frame: Buffer) => void) => {
  let rest: Buffer = Buffer.alloc(0)
  return (data: Buffer) => {
    rest = rest.length === 0 ? data : Buffer.concat([rest, data])
    while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
      const size = 4 + rest.readInt32BE(0)
      take(rest.subarray(0, size))
      rest = rest.subarray(size)
    }
  }
}

const renamed = (state: State, frame: Buffer): Buffer => {
  let body: Buffer = frame.subarray(4)
  for (const { from, to } of state.renames) {
    const at = body.indexOf(from)
    if (at >= 0) body = Buffer.concat([body.subarray(0, at), to, body.subarray(at + from.length)])
  }
  const size = Buffer.alloc(4)
  size.writeInt32BE(body.length)
  return Buffer.concat([size, body])
}

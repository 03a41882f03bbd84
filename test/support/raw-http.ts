// Speaks to a server byte by byte, and reads its answers as a strict client would.
import { connect, type Socket } from 'node:net'

export type RawAnswer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export type RawConnection = {
  readonly answers: readonly RawAnswer[]
  write(bytes: Buffer | string): Promise<void>
  /** Resolves with that many answers, or with the end of the connection. */
  answered(count: number): Promise<void>
  /** No more will come from here; answers still may. */
  end(): void
  /** As a client that loses its network. */
  abort(): void
  /** Until the other side ends it. */
  isOpen(): boolean
  /** Whether the other side has no connection any more either. */
  isGone(): boolean
  /** Bytes that are no complete answer. */
  rest(): string
}

/** Generous, for a loaded machine. */
const patienceMs = 30_000

export const openRaw = (url: string): Promise<RawConnection> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      resolve(connectionOf(socket))
    })
  })

const connectionOf = (socket: Socket): RawConnection => {
  const answers: RawAnswer[] = []
  let received = Buffer.alloc(0)
  let isOpen = true
  let isGone = false
  const waiting = new Set<() => void>()
  const wake = () => {
    for (const look of waiting) look()
  }
  socket.setNoDelay(true)
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    for (let read = readAnswer(received); read; read = readAnswer(received)) {
      // An interim answer is none.
      if (read.answer.status >= 200) answers.push(read.answer)
      received = received.subarray(read.length)
    }
    wake()
  })
  socket.on('error', () => undefined)
  socket.on('end', () => {
    isOpen = false
    wake()
  })
  socket.on('close', () => {
    isOpen = false
    isGone = true
    wake()
  })
  return {
    answers,
    write: (bytes) =>
      new Promise((resolve) => {
        if (!socket.writable) return resolve()
        // A server that has closed meanwhile is an outcome, not a fault of this connection.
        socket.once('close', resolve)
        socket.write(bytes, () => {
          socket.off('close', resolve)
          resolve()
        })
      }),
    answered: (count) =>
      new Promise((resolve, reject) => {
        const late = setTimeout(() => {
          waiting.delete(look)
          reject(new Error(`${answers.length} of ${count} answers within ${patienceMs} ms`))
        }, patienceMs)
        const look = () => {
          if (answers.length < count && isOpen) return
          clearTimeout(late)
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
    end: () => socket.end(),
    abort: () => socket.resetAndDestroy(),
    isOpen: () => isOpen,
    isGone: () => isGone,
    rest: () => received.toString('latin1'),
  }
}

/** Every answer of ours says how long it is; one that does not is left unread, and a test fails. */
const readAnswer = (bytes: Buffer) => {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd < 0) return null
  const [line = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n')
  const headers = Object.fromEntries(
    lines.map((header) => {
      const colon = header.indexOf(':')
      return [header.slice(0, colon).toLowerCase(), header.slice(colon + 1).trim()]
    }),
  )
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1])
  const isBodyless = status < 200 || status === 204
  const bodyLength = isBodyless ? 0 : Number(headers['content-length'])
  const length = headEnd + 4 + bodyLength
  if (!(bytes.length >= length)) return null
  const body = bytes.toString('utf8', headEnd + 4, length)
  return { length, answer: { status, headers, body } satisfies RawAnswer }
}

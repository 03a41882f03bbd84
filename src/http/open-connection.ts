// Makes a connection of the outgoing port: opens its socket, and passes on what the socket says.
import { once } from 'node:events'
import { openAnswerReader } from './answer-reader.ts'
import { type Opened, type Opening, openSocket } from './connect.ts'
import { begin, type Connection, closed, type Ends, ended, failed, heard } from './exchange.ts'
import type { Target } from './targets.ts'

type Options = {
  readonly opening: Opening
  readonly ends: Ends
  readonly headersBytesMax: number
}

/** Its first request is given to it at once, and is written when there is a socket. */
export const openConnection = (options: Options, target: Target): Connection => {
  const { ends, opening, headersBytesMax } = options
  const connection: Connection = {
    key: target.key,
    answer: openAnswerReader(headersBytesMax),
    socket: null,
    fresh: true,
    isClosed: false,
    phases: null,
    job: null,
    keptUntil: 0,
    timer: null,
    exactTimer: null,
  }
  openSocket(opening, target.peer).then(
    (opened) => attach(ends, connection, opened),
    (error) => failed(ends, connection, error),
  )
  return connection
}

const attach = (ends: Ends, connection: Connection, { socket, phases }: Opened): void => {
  if (connection.isClosed) {
    socket.destroy()
    return
  }
  connection.socket = socket
  connection.phases = phases
  let problem: unknown = null
  socket.on('data', (bytes: Buffer) => heard(ends, connection, bytes))
  socket.on('end', () => ended(ends, connection))
  socket.on('error', (error) => {
    problem = error
  })
  socket.on('close', () => closed(ends, connection, problem))
  begin(ends, connection)
}

export const destroyConnection = (connection: Connection): void => {
  const { socket, timer, exactTimer } = connection
  connection.isClosed = true
  if (timer) clearTimeout(timer)
  if (exactTimer) clearTimeout(exactTimer)
  socket?.destroy()
}

/** Resolves when nothing is left of a connection that was destroyed. */
export const closedConnection = async ({ socket }: Connection): Promise<void> => {
  if (socket && !socket.closed) await once(socket, 'close')
}

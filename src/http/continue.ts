// A receiver may say `100 Continue` unasked, and a client has to bear it (RFC 9110, 15.2); undici breaks the connection.
import type { Socket } from 'node:net'

const unasked = Buffer.from('HTTP/1.1 100')

/** Its parser skips other informational answers: while one is awaited, a 100 is read as the 102 it is as good as. */
export const bearContinue = (socket: Socket, isAwaited: () => boolean): void => {
  const read = socket.read.bind(socket)
  socket.read = (size) => {
    const chunk: Buffer | null = read(size)
    if (chunk !== null && isAwaited() && isContinue(chunk)) chunk.write('2', unasked.length - 1)
    return chunk
  }
}

const isContinue = (chunk: Buffer): boolean =>
  chunk.length >= unasked.length && unasked.compare(chunk, 0, unasked.length) === 0

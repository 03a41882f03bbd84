// How an HTTP server ends: answers what was asked, closes connections as they fall idle, and all at a deadline.
import type { FastifyInstance } from 'fastify'

const idleEveryMs = 50

export const drain = async (app: FastifyInstance, msMax: number): Promise<void> => {
  // A client that never finishes its request must not hold up the process.
  const deadline = setTimeout(() => app.server.closeAllConnections(), msMax)
  // A connection may fall idle only after closing began, when it was kept for a stream or sent more than we read.
  const idle = setInterval(() => app.server.closeIdleConnections(), idleEveryMs)
  await app.close()
  clearTimeout(deadline)
  clearInterval(idle)
}

// Whether a URL's peer can be connected to and is who it says: a handshake, and not a byte of a request.
import { classifyError } from './classify.ts'
import { type Opening, openSocket } from './connect.ts'
import type { Probe } from './post.ts'
import type { Targets } from './targets.ts'

export const probeOver =
  (opening: Opening, targets: Targets): Probe =>
  async (url, tls) => {
    const target = targets.find(url, tls)
    if ('type' in target) return reasonOf(target)
    try {
      const { socket } = await openSocket(opening, target.peer)
      // Ends, so that what the handshake still had to write is on its way before the socket goes.
      socket.end(() => socket.destroy())
      return 'ok'
    } catch (error) {
      return reasonOf(classifyError(error))
    }
  }

const reasonOf = (answer: ReturnType<typeof classifyError>): string =>
  answer.type === 'delivered' ? 'ok' : answer.reason

// Stands between a client and Millrace and spoils one request in a hundred: the client must try again.
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { seeded } from '../support/seeded.ts'

/** Refused before Millrace sees it, twice; or stored, with the answer lost: only that one makes duplicates. */
const kinds = ['429', '503', '503 once stored'] as const
export type Fault = (typeof kinds)[number]

export type UnsteadyProxy = {
  readonly url: string
  /** What came, with what was done to it; only POSTs are spoiled. */
  readonly requests: {
    readonly method: string
    readonly path: string
    readonly headers: IncomingHttpHeaders
    fault: Fault | null
  }[]
  posts(): UnsteadyProxy['requests']
  /** While down, every POST is answered 503. */
  setDown(isDown: boolean): void
  close(): Promise<void>
}

/** Without a seed nothing is spoiled. */
export const openProxy = async (to: string, seed: number | null): Promise<UnsteadyProxy> => {
  const draw = seed === null ? () => null : faults(seed)
  const requests: UnsteadyProxy['requests'] = []
  let isDown = false
  const server = createServer((incoming, answer) => {
    const faultOfPost = () => (isDown ? '503' : draw())
    const fault = incoming.method === 'POST' ? faultOfPost() : null
    const { method = '', url: path = '', headers } = incoming
    requests.push({ method, path, headers, fault })
    if (fault !== null && fault !== '503 once stored') {
      incoming.resume().once('end', () => spoil(incoming, answer, fault))
      return
    }
    forward({ incoming, answer, to, fault })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    posts: () => requests.filter(({ method }) => method === 'POST'),
    setDown: (next) => {
      isDown = next
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const per = 100

/** One request of each hundred, drawn for each hundred anew; the kinds take turns, so that none is left out. */
const faults = (seed: number) => {
  const random = seeded(seed)
  let number = 0
  let spoiled = 0
  let turn = Math.floor(random() * kinds.length)
  return (): Fault | null => {
    const within = number++ % per
    if (within === 0) spoiled = Math.floor(random() * per)
    return within === spoiled ? (kinds[turn++ % kinds.length] as Fault) : null
  }
}

type Passing = {
  readonly incoming: IncomingMessage
  readonly answer: ServerResponse
  readonly to: string
  readonly fault: Fault | null
}

const forward = ({ incoming, answer, to, fault }: Passing): void => {
  const { method = 'GET', url = '/', headers } = incoming
  const onward = request(new URL(url, to), { method, headers }, (response) => {
    if (fault !== null) {
      response.resume().once('end', () => spoil(incoming, answer, fault))
      return
    }
    answer.writeHead(response.statusCode ?? 502, response.headers)
    response.pipe(answer)
  })
  onward.once('error', () => answer.destroy())
  incoming.pipe(onward)
}

const spoil = (incoming: IncomingMessage, answer: ServerResponse, fault: Fault): void => {
  const status = fault === '429' ? 429 : 503
  const code = status === 429 ? 'overloaded' : 'log_unavailable'
  answer.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    ...(status === 429 ? { 'retry-after': '1' } : {}),
    // What a browser's script may see of it.
    'access-control-allow-origin': incoming.headers.origin ?? '*',
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': 'Retry-After',
  })
  answer.end(JSON.stringify({ success: false, code, message: code, error: code }))
}

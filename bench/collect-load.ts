// The collect bench's load: keep-alive connections that each send one request after the other.
import { connect, type Socket } from 'node:net'
import { benchRequests, type Form } from './collect-calls.ts'

type Order = {
  readonly url: string
  readonly seconds: number
  readonly connections: number
  readonly form: Form
}

const run = async ({ url, seconds, connections, form }: Order) => {
  const requests = benchRequests(form, new Date())
  const endAt = performance.now() + seconds * 1_000
  const latencies: number[] = []
  const drive = (index: number) =>
    new Promise<void>((resolve, reject) => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1')
      let turn = index * 7
      let sentAt = 0
      const next = () => {
        sentAt = performance.now()
        if (sentAt >= endAt) {
          socket.end()
          return resolve()
        }
        turn += 1
        socket.write(requests[turn % requests.length] as Buffer)
      }
      onAnswer(socket, (isOk) => {
        if (!isOk) return reject(new Error('an answer was not 200'))
        latencies.push(performance.now() - sentAt)
        next()
      })
      socket.on('connect', next).on('error', reject)
    })
  await Promise.all(Array.from({ length: connections }, (_, index) => drive(index)))
  latencies.sort((a, b) => a - b)
  const at = (share: number) => latencies[Math.floor((latencies.length - 1) * share)] ?? 0
  return { requests: latencies.length, p50Ms: at(0.5), p99Ms: at(0.99) }
}

/** Answers are small and end where their length says: no general HTTP parser is needed. */
const onAnswer = (socket: Socket, answered: (isOk: boolean) => void) => {
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
    const head = text.indexOf('\r\n\r\n')
    if (head < 0) return
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1])
    if (text.length < head + 4 + length) return
    const isOk = text.startsWith('HTTP/1.1 200') && text.endsWith('{"success":true}')
    text = ''
    answered(isOk)
  })
}

process.on('message', (order: Order) => {
  run(order).then(
    (result) => process.send?.(result),
    (error: unknown) => process.send?.({ error: String(error) }),
  )
})
process.on('disconnect', () => process.exit(0))

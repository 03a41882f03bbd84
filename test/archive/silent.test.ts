// A store whose server takes a request and says nothing: it must end in time, also when memory is cleaned up meanwhile.
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, onTestFinished, test } from 'vitest'
import { openStore } from '../../src/archive/store.ts'
import { until } from '../support/until.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const head = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n'

const aSilentStore = async (answer: string, requestMs: number) => {
  const sockets = new Set<Socket>()
  let asked = 0
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('data', () => {
      asked += 1
      socket.write(answer)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const store = openStore({
    place: { type: 's3', bucket: 'events', prefix: '', endpoint, region: 'us-east-1' },
    credentials: { accessKeyId: 'one', secretAccessKey: 'of-the-tests' },
    limits: { requestMs, triesMax: 1, pauseMs: 1 },
  })
  return { store, asked: () => asked }
}

const endOf = (asking: Promise<unknown>) => {
  const end = { error: null as Error | null }
  asking.catch((error: Error) => {
    end.error = error
  })
  return end
}

test.each([
  { name: 'says nothing', answer: '' },
  { name: 'stops in the midst of its answer', answer: `${head}half` },
])('a request to a server that $name ends when its time is over', async ({ answer }) => {
  const { store, asked } = await aSilentStore(answer, 1_000)
  const end = endOf(store.get('calls/a'))
  await until(() => asked() === 1, 'it is asked')
  await until(() => {
    collectGarbage()
    return end.error !== null
  }, 'its time is over')
  expect(end.error?.name).toBe('TimeoutError')
})

test('a request that whoever asked does not want any more ends at once', async () => {
  const { store, asked } = await aSilentStore('', 600_000)
  const stopping = new AbortController()
  const end = endOf(store.get('calls/a', stopping.signal))
  await until(() => asked() === 1, 'it is asked')
  for (let times = 0; times < 5; times += 1) {
    collectGarbage()
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  stopping.abort()
  await until(() => end.error !== null, 'it ends')
})

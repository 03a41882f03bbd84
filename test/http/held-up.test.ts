// A process that is held up for seconds finds answers that came in time: its own lateness is no receiver's fault.
import { once } from 'node:events'
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { openPost } from '../../src/http/open-post.ts'

const holdUp = (ms: number) => {
  const until = performance.now() + ms
  while (performance.now() < until);
}

test('an answer that came while the process was held up counts', async () => {
  const worker = new Worker(new URL('./late-worker.ts', import.meta.url))
  const [port] = (await once(worker, 'message')) as [number]
  const post = openPost({
    addresses: { allowPrivate: true, allowed: [] },
    limits: { answerMs: 1_000, connectMs: 1_000, totalMs: 10_000 },
  })
  const send = () =>
    post({ url: `http://127.0.0.1:${port}/`, headers: {}, body: Buffer.from('{}') })
  // On a new connection and on one that was kept, whose timer has run before.
  expect((await send()).answer).toEqual({ type: 'delivered' })
  for (let at = 0; at < 3; at += 1) {
    const results = Promise.all([send(), send()])
    await sleep(20)
    // From there the event loop comes to its timers before it looks at its sockets.
    await immediate()
    holdUp(1_500)
    expect((await results).map(({ answer }) => answer.type)).toEqual(['delivered', 'delivered'])
  }
  await post.close()
  await worker.terminate()
})

// send.php killed with -9: nothing of the log is lost, and what comes twice comes under the same message id.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { freshId, type Line, once, openLine } from '../clients/line.ts'
import { seed } from '../support/seed.ts'
import { seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'
import { appendCalls, besides, send, startSend } from './log.ts'
import { expectQuiet, phpTest, tempFolder } from './page.ts'
import { answering, openForward, openServer } from './servers.ts'

const writeKey = freshId('wk')
let line: Line

beforeAll(async () => {
  line = await openLine(freshId('kill'), [{ name: 'server', class: 'server', writeKey }])
})

afterAll(() => line.close())

const freshLog = async () => join(await tempFolder(), 'analytics.log')
const accept = answering(200, {}, '{"success":true}')

phpTest(
  'killed once its batch was accepted, before it knew, it sends that one again and no other',
  async () => {
    const log = await freshLog()
    await appendCalls(log, freshId('user'), [0, 500])
    const ids = (await readFile(log, 'utf8'))
      .trimEnd()
      .split('\n')
      .map((text) => JSON.parse(text).messageId)
    const killedAt = 2
    let kill = () => false
    const server = await openServer((response, seen, index) => {
      if (index === killedAt) kill()
      else accept(response, seen, index)
    })
    const first = startSend({ writeKey, log, host: server.url })
    kill = first.kill9
    expect((await first.done).signal).toBe('SIGKILL')

    expectQuiet(await send({ writeKey, log, host: server.url }))

    const batches = server.messageIds()
    expect(batches[killedAt + 1]).toEqual(batches[killedAt])
    expect(batches.toSpliced(killedAt, 1).flat()).toEqual(ids)
    expect(await besides(log)).toEqual([])
  },
)

const kills = 12
const callsAtOnce = 400
const batchSize = 20

phpTest(
  'killed at random while the log grows, every call arrives once',
  { timeout: 600_000 },
  async () => {
    const random = seeded(seed)
    const [log, userId] = [await freshLog(), freshId('user')]
    /** The first request whose answer waits for the kill, so that it cannot come too late. */
    let heldFrom = Number.POSITIVE_INFINITY
    let dead = Promise.withResolvers<void>()
    const held = (index: number) => (index >= heldFrom ? dead.promise : null)
    const forward = await openForward(line.collectUrl, 0, held)
    const args = ['--batch-size', String(batchSize)]
    let count = 0
    let killed = 0
    for (let kill = 0; kill < kills; kill += 1) {
      await appendCalls(log, userId, [count, count + callsAtOnce])
      count += callsAtOnce
      const before = forward.seen.length
      // Some of them before the first request, most in the midst of the log.
      const after = Math.floor(random() * (callsAtOnce / batchSize))
      const delayMs = random() * 40
      // Every other one before an answer, however fast the machine is; the others whenever it happens.
      dead = Promise.withResolvers()
      heldFrom = kill % 2 === 0 ? before + after : Number.POSITIVE_INFINITY
      const run = startSend({ writeKey, log, host: forward.url, args })
      await Promise.race([until(() => forward.seen.length >= before + after), run.done])
      await new Promise((resolve) => setTimeout(resolve, delayMs))
      run.kill9()
      killed += (await run.done).signal === 'SIGKILL' ? 1 : 0
      heldFrom = Number.POSITIVE_INFINITY
      dead.resolve()
    }
    expectQuiet(await send({ writeKey, log, host: forward.url, args }))

    expect(killed).toBeGreaterThanOrEqual(kills / 2)
    expect(await besides(log)).toEqual([])
    const sent = forward.messageIds().flat()
    expect(new Set(sent).size).toBe(count)
    expect(sent.length - count).toBeLessThanOrEqual(killed * batchSize)
    const arrived = () =>
      line.bodies().filter((body) => String(body['userId']).startsWith(`${userId}-`))
    const numbersIn = (bodies: readonly Record<string, unknown>[]) =>
      bodies.map(({ properties }) => (properties as { readonly n: number }).n)
    await until(() => new Set(numbersIn(arrived())).size >= count, `${count} calls arrive`, 120_000)
    const [last, sentinel] = [await freshLog(), freshId('sentinel')]
    await appendCalls(last, sentinel, [0, 1])
    expectQuiet(await send({ writeKey, log: last, host: line.collectUrl }))
    await until(() => line.bodies().some((body) => body['userId'] === `${sentinel}-0`))
    const numbers = numbersIn(await once(line, arrived()))
    expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, n) => n))
  },
)

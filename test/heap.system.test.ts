// A process that remembers much stays near to that, on a machine with memory to spare too.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'

type Held = { readonly liveBytes: number; readonly mostBytes: number }

const run = async (): Promise<Held> => {
  const child = fork(new URL('support/heap-child.ts', import.meta.url), [], { execArgv: [] })
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`it ended with ${code} and told nothing`)
  })
  const [held] = (await Promise.race([once(child, 'message'), ended])) as [Held]
  await ended.catch(() => undefined)
  return held
}

/** What passes by, and pages that are not full. */
const passingBytes = 67_108_864

test('a large heap stays near to what is alive in it', async () => {
  const { liveBytes, mostBytes } = await run()
  expect(liveBytes).toBeGreaterThan(100_663_296)
  expect(mostBytes).toBeLessThan(1.5 * liveBytes + passingBytes)
}, 600_000)

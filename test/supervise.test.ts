// Parts of a process: one order of stopping, and the death of one is the end of all.
import { pino } from 'pino'
import { expect, test } from 'vitest'
import type { Running } from '../src/running.ts'
import { closing, supervise } from '../src/supervise.ts'

const logger = pino({ level: 'silent' })

/** A part that writes down when it stops, and can be made to die. */
const aPart = (name: string, stopped: string[]) => {
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  const running: Running = {
    done,
    stop: async () => {
      stopped.push(name)
      resolve()
    },
  }
  return { part: { name, running }, die: (error: Error) => reject(error) }
}

test('parts stop in their order, each after the one before has stopped', async () => {
  const events: string[] = []
  const slow = closing('first', async () => {
    events.push('first stops')
    await new Promise((resolve) => setTimeout(resolve, 20))
    events.push('first stopped')
  })
  const quick = closing('second', async () => events.push('second stopped'))
  await supervise([slow, quick], logger).stop()
  expect(events).toEqual(['first stops', 'first stopped', 'second stopped'])
})

test('when one dies the others stop in order, and the end is its error', async () => {
  const stopped: string[] = []
  const parts = ['collect', 'project', 'database'].map((name) => aPart(name, stopped))
  const running = supervise(
    parts.map(({ part }) => part),
    logger,
  )
  parts[1]?.die(new Error('no more'))
  await expect(running.done).rejects.toThrow('no more')
  expect(stopped).toEqual(['collect', 'project', 'database'])
})

test('a part that cannot stop does not keep the others from stopping, and is told', async () => {
  const stopped: string[] = []
  const broken = closing('broken', () => Promise.reject(new Error('stuck')))
  const last = aPart('last', stopped)
  await expect(supervise([broken, last.part], logger).stop()).rejects.toThrow('stuck')
  expect(stopped).toEqual(['last'])
})

test('stopping twice stops once', async () => {
  const stopped: string[] = []
  const running = supervise([aPart('only', stopped).part], logger)
  await Promise.all([running.stop(), running.stop()])
  await running.stop()
  expect(stopped).toEqual(['only'])
})

test('a part that hangs is left behind after its time, and is told', async () => {
  const stopped: string[] = []
  const hanging = closing('hanging', () => new Promise(() => undefined))
  const last = aPart('last', stopped)
  const limits = { partMs: 20, totalMs: 1_000, leastMs: 1 }
  await expect(supervise([hanging, last.part], logger, limits).stop()).rejects.toThrow(
    'did not stop within 20 ms',
  )
  expect(stopped).toEqual(['last'])
})

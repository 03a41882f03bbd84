// The naive evaluation of many people on all cores: nobody has anything to do with anybody else there, so parts
// of them are worked out beside each other, one for each core.
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { Call } from '../support/language.ts'
import type { Scenario } from './expectation.ts'

const peopleOfPart = 50

type Lines = readonly (readonly string[])[]

/** What `expectedMessages` says, and after each part how many of how many there are. */
export const expectedInParts = async (
  { calls, definitions }: Scenario,
  instants: readonly number[],
  onPart: (done: number, of: number) => void,
): Promise<Lines> => {
  const parts = partsOf(calls)
  const waiting = [...parts]
  const all: string[][] = instants.map(() => [])
  let done = 0
  const work = async () => {
    const worker = startWorker({ definitions, instants })
    try {
      for (let part = waiting.shift(); part !== undefined; part = waiting.shift()) {
        worker.postMessage(part)
        const [told] = (await once(worker, 'message')) as [Lines]
        for (const [index, lines] of told.entries()) all[index]?.push(...lines)
        onPart(++done, parts.length)
      }
    } finally {
      // Where one failed the others need not go on.
      waiting.length = 0
      await worker.terminate()
    }
  }
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), parts.length) }, work))
  return all.map((lines) => lines.sort())
}

const startWorker = (workerData: Pick<Scenario, 'definitions'> & { instants: readonly number[] }) =>
  new Worker(new URL('./naive-worker.ts', import.meta.url), { workerData, execArgv: [] })

/** All calls of a person are in one part, in their order. */
const partsOf = (calls: readonly Call[]): readonly (readonly Call[])[] => {
  const byUser = Map.groupBy(calls, ({ userId }) => userId)
  const people = [...byUser.values()]
  return Array.from({ length: Math.ceil(people.length / peopleOfPart) }, (_, part) =>
    people.slice(part * peopleOfPart, (part + 1) * peopleOfPart).flat(),
  )
}

// A thread of the naive evaluation: for each part of the calls that it is sent, what syncs must say of them.
import { parentPort, workerData } from 'node:worker_threads'
import type { Call } from '../support/language.ts'
import { expectedMessages, type Scenario } from './expectation.ts'

const { definitions, instants } = workerData as Pick<Scenario, 'definitions'> & {
  readonly instants: readonly number[]
}

parentPort?.on('message', (calls: readonly Call[]) => {
  parentPort?.postMessage(expectedMessages({ calls, definitions }, instants))
})

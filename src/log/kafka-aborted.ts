// The transactions that were aborted, in the order kafkajs takes them to be in. Brokers list them by where they
// ended; kafkajs 2.2.4 looks for the one that begins next, and lets records of any other through as if committed
// (the Java consumer orders them by their beginning). Only foreign producers abort: ours have no transactions.
import { createRequire } from 'node:module'

type Aborted = { readonly producerId: string; readonly firstOffset: string }
type Fetched = {
  readonly responses: readonly {
    readonly partitions: readonly { readonly abortedTransactions: Aborted[] | null }[]
  }[]
}
type Answer = { decode(bytes: unknown): Promise<Fetched> }

const load = createRequire(import.meta.url)
/** Of the fetch request: those that know of transactions and that kafkajs speaks. */
const versions = [4, 5, 6, 7, 8, 9, 10, 11]

/** Works on kafkajs itself, in the one version we pin; the trap suite notices if it ever moves. */
export const orderAborted = (): void => {
  for (const version of versions) {
    const answer = load(`kafkajs/src/protocol/requests/fetch/v${version}/response`) as Answer
    const { decode } = answer
    answer.decode = async (bytes) => {
      const fetched = await decode(bytes)
      for (const { partitions } of fetched.responses)
        for (const { abortedTransactions } of partitions) abortedTransactions?.sort(byBeginning)
      return fetched
    }
  }
}

const byBeginning = (one: Aborted, other: Aborted) =>
  Number(BigInt(one.firstOffset) - BigInt(other.firstOffset))

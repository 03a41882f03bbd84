// Adds up, for one batch, which calls which destinations did not get and why.
import type { CallType, Message } from '../domain/message.ts'
import type { Pipeline } from '../domain/pipeline.ts'
import type { Fanned, Withheld } from './fan-out.ts'

type Counted = Withheld & {
  readonly sourceId: number
  readonly type: CallType
  amount: number
}

export type WithheldTally = {
  add(message: Pick<Message, 'sourceId' | 'type'>, fanned: Fanned): void
  /** Pairs of call and destination. */
  pairs(): number
  count(pipeline: Pipeline | undefined): void
}

export const openWithheldTally = (): WithheldTally => {
  const counts = new Map<string, Counted>()
  let pairs = 0
  return {
    add: ({ sourceId, type }, { withheld }) => {
      pairs += withheld.length
      for (const { destinationId, reason } of withheld) {
        const key = `${sourceId} ${destinationId} ${type} ${reason}`
        const counted = counts.get(key)
        if (counted) counted.amount += 1
        else counts.set(key, { sourceId, destinationId, type, reason, amount: 1 })
      }
    },
    pairs: () => pairs,
    count: (pipeline) => {
      for (const { amount, ...counted } of counts.values())
        pipeline?.count({ ...counted, step: 'filtered' }, amount)
    },
  }
}

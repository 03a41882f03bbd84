// What follows a round: its message is settled, given up, or waits for its next one.
import { nextTry } from '../domain/retry.ts'
import type { Verdict } from '../domain/round.ts'
import { putWork } from './desk.ts'
import { holdShortly } from './hold.ts'
import { unpark } from './lanes.ts'
import { bury, park, parkWaiting, untried } from './park.ts'
import { keptBody } from './quota.ts'
import type { Delivery, Row, Stage } from './stage.ts'

type Tried = {
  readonly now: number
  readonly attempts: number
  readonly firstTryAt: number | null
}

type Result = {
  readonly verdict: Verdict
  readonly tried: Tried
  readonly urls: readonly string[]
  readonly isForced: boolean
}

export const follow = (stage: Stage, delivery: Delivery, result: Result): void => {
  const { verdict, tried, urls, isForced } = result
  const { row, chain } = delivery
  if (chain.partition.lost) return
  switch (verdict.type) {
    case 'delivered':
      if (row) deliveredRow(stage, delivery, row)
      return
    case 'final':
      bury(stage, delivery, {
        reason: verdict.reason,
        status: verdict.status,
        attempts: tried.attempts,
        firstTryAt: tried.firstTryAt,
      })
      return
    case 'ours':
      tryLater(stage, delivery)
      return
    case 'temporary': {
      if (isForced) {
        const { attempts, firstTryAt } = tried
        bury(stage, delivery, { reason: 'expired', status: verdict.status, attempts, firstTryAt })
        return
      }
      const final = verdict.final.map((at) => urls[at] as string)
      postpone(stage, delivery, {
        verdict,
        tried,
        finalUrls: [...(row?.finalUrls ?? []), ...final],
      })
    }
  }
}

const deliveredRow = (stage: Stage, { chain }: Delivery, row: Row): void =>
  putWork(stage, {
    task: { type: 'delivered', id: row.id, chain },
    partition: chain.partition,
    settled: (kept) => kept && unpark(stage, chain),
  })

/** Not a try: this machine had no room for it. */
const tryLater = (stage: Stage, delivery: Delivery): void => {
  if (delivery.row) {
    holdShortly(stage, delivery)
    return
  }
  const nextAt = stage.deps.clock().getTime() + ownFaultMs
  park(stage, delivery, { ...untried('temporary'), nextAt, lastReason: 'local_resources' })
  parkWaiting(stage, delivery.chain, 'behind_parked')
}

const ownFaultMs = 1_000

type Postponement = {
  readonly verdict: Extract<Verdict, { type: 'temporary' }>
  readonly tried: Tried
  readonly finalUrls: readonly string[]
}

const postpone = (stage: Stage, delivery: Delivery, postponement: Postponement): void => {
  const { verdict, tried, finalUrls } = postponement
  const { chain, row, body } = delivery
  const { reason, status, retryAfterMs } = verdict
  const { attempts } = tried
  const firstTryAt = tried.firstTryAt ?? tried.now
  const now = stage.deps.clock().getTime()
  const next = nextTry({ attempts, firstTryAt, now, random: stage.random(), retryAfterMs })
  if (next.type === 'expired') {
    bury(stage, delivery, { reason: 'expired', status, attempts, firstTryAt })
    return
  }
  if (row) {
    const retry = {
      id: row.id,
      nextAt: new Date(next.at),
      firstTryAt: new Date(firstTryAt),
      attempts,
      finalUrls,
      reason,
      status,
      body: row.isKept ? null : keptBody(stage, chain.lane, body),
    }
    const task = { type: 'retry', retry } as const
    putWork(stage, { task, partition: chain.partition, settled: () => undefined })
  } else {
    const last = { lastReason: reason, lastStatus: status }
    const parking = { nextAt: next.at, firstTryAt, attempts, finalUrls, ...last }
    park(stage, delivery, { reason: 'temporary', ...parking })
  }
  parkWaiting(stage, chain, 'behind_parked')
}

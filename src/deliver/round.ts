// One round: a message posted to every usable URL of its destination in parallel, and what follows.
import type { Destination, Webhook } from '../domain/configuration.ts'
import { isReservedHeader } from '../domain/reserved-header.ts'
import { isExpired, nextTry } from '../domain/retry.ts'
import { decideRound, type Verdict } from '../domain/round.ts'
import { sign } from '../domain/signature.ts'
import type { PostResult } from '../http/post.ts'
import { recordAttempt } from './attempts.ts'
import { putWork } from './desk.ts'
import { end, pump, unpark } from './lanes.ts'
import { bury, park, parkWaiting, settle } from './park.ts'
import type { Delivery, Row, Stage } from './stage.ts'

export const startRound = (stage: Stage, delivery: Delivery): void => {
  runRound(stage, delivery).catch(stage.fail)
}

const runRound = async (stage: Stage, delivery: Delivery): Promise<void> => {
  await attempt(stage, delivery)
  end(stage, delivery)
  pump(stage, (next) => startRound(stage, next))
}

/** URL, headers, secret and whether the destination is on are read at each try. */
const attempt = async (stage: Stage, delivery: Delivery): Promise<void> => {
  const { chain, row } = delivery
  const destination = stage.deps.live.now().destinations.get(chain.lane.destinationId)
  const now = stage.deps.clock().getTime()
  const attempts = row?.attempts ?? 0
  const firstTryAt = row?.firstTryAt ?? null
  const giveUp = (reason: string) =>
    bury(stage, delivery, { reason, status: null, attempts, firstTryAt })
  if (!destination?.enabled) return giveUp('cancelled')
  if (isExpired(firstTryAt, now)) return giveUp('expired')
  // Too late to settle under this lease: left alone, the row is claimed again.
  if (row && now > row.leaseUntil - stage.limits.leaseMarginMs) return
  const webhooks = destination.webhooks.filter(({ url }) => !row?.finalUrls.includes(url))
  if (webhooks.length === 0) return giveUp('no_url')
  const results = await postAll(stage, delivery, { destination, webhooks })
  const tried: Tried = { now, attempts: attempts + 1, firstTryAt: firstTryAt ?? now }
  webhooks.forEach(({ url }, at) => {
    const result = results[at] as PostResult
    recordAttempt(stage, { delivery, url, result, attempt: tried.attempts, startedAt: now })
    if (isTimeout(result)) warnTimeout(stage, delivery, url)
  })
  const verdict = decideRound(results.map(({ answer }) => answer))
  follow(stage, delivery, { verdict, tried, urls: webhooks.map(({ url }) => url) })
}

type Target = { readonly destination: Destination; readonly webhooks: readonly Webhook[] }

const postAll = async (
  stage: Stage,
  delivery: Delivery,
  { destination, webhooks }: Target,
): Promise<readonly PostResult[]> => {
  const { body } = delivery
  const signature = destination.sharedSecret ? sign(destination.sharedSecret, body) : null
  const post = async (webhook: Webhook) => {
    const headers = headersOf(webhook, signature)
    const result = await stage.deps.post({ url: webhook.url, headers, body })
    // Any one success settles the message; the other URLs run to their end and are not tried again.
    if (result.answer.type === 'delivered') settleOnce(delivery)
    return result
  }
  const [only] = webhooks
  return webhooks.length === 1 && only ? [await post(only)] : Promise.all(webhooks.map(post))
}

const settleOnce = (delivery: Delivery): void => {
  delivery.chain.lane.deliveredAt = performance.now()
  if (delivery.open?.left.includes(delivery.chain.lane.destinationId)) settle(delivery, 'delivered')
}

const prepared = new WeakMap<Webhook, Readonly<Record<string, string>>>()

const headersOf = (webhook: Webhook, signature: string | null): Record<string, string> => {
  let fixed = prepared.get(webhook)
  if (!fixed) {
    const own = Object.entries(webhook.headers).filter(([name]) => !isReservedHeader(name))
    fixed = { 'Content-Type': 'application/json', ...Object.fromEntries(own) }
    prepared.set(webhook, fixed)
  }
  return signature === null ? fixed : { ...fixed, 'X-Signature': signature }
}

type Tried = { readonly now: number; readonly attempts: number; readonly firstTryAt: number }

type Result = {
  readonly verdict: Verdict
  readonly tried: Tried
  readonly urls: readonly string[]
}

const follow = (stage: Stage, delivery: Delivery, { verdict, tried, urls }: Result): void => {
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
    case 'temporary': {
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

type Postponement = {
  readonly verdict: Extract<Verdict, { type: 'temporary' }>
  readonly tried: Tried
  readonly finalUrls: readonly string[]
}

const postpone = (stage: Stage, delivery: Delivery, postponement: Postponement): void => {
  const { verdict, tried, finalUrls } = postponement
  const { chain, row, body } = delivery
  const { reason, status, retryAfterMs } = verdict
  const { attempts, firstTryAt } = tried
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
      body,
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

const isTimeout = ({ answer }: PostResult): boolean =>
  answer.type === 'temporary' &&
  (answer.reason === 'timeout' || answer.reason === 'connect_timeout')

const warnTimeout = (stage: Stage, delivery: Delivery, url: string): void => {
  const { destinationId } = delivery.chain.lane
  const host = URL.parse(url)?.host
  stage.deps.logger.warn(
    { destinationId, host, messageId: delivery.messageId },
    'attempt.timed_out',
  )
}

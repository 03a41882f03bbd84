// One round: a message posted to every usable URL of its destination in parallel, and what follows.
import type { Webhook } from '../domain/configuration.ts'
import { isReservedHeader } from '../domain/reserved-header.ts'
import { isExpired, windowEnd } from '../domain/retry.ts'
import { decideRound, type Plan, planRound } from '../domain/round.ts'
import { signedHeaders } from '../domain/signature.ts'
import { answered } from '../domain/url-answer.ts'
import { begin, isWell, standingOf } from '../domain/url-health.ts'
import type { PostResult, PostTls } from '../http/post.ts'
import { recordAttempt } from './attempts.ts'
import { follow } from './follow.ts'
import { isForgotten } from './forgotten.ts'
import { hold, holdShortly } from './hold.ts'
import { end, offer, pump } from './lanes.ts'
import { meterAttempt, meterRound } from './meter.ts'
import { bury, settle } from './park.ts'
import { isServed, isWithdrawn } from './replays.ts'
import type { Delivery, Stage } from './stage.ts'
import { urlChanged } from './url-change.ts'
import { type Target, targetOf, type UrlEntry, usableOf, whenRoom } from './urls.ts'

export const startRound = (stage: Stage, delivery: Delivery): void => {
  runRound(stage, delivery).catch(stage.fail)
}

const runRound = async (stage: Stage, delivery: Delivery): Promise<void> => {
  const asking = planFor(stage, delivery)
  if (asking) {
    const { at, later } = asking.plan
    const isOne = at.length === 1 && later.length === 0
    const asked = isOne
      ? [await postOne(stage, delivery, { ...asking, place: at[0] as number })]
      : await postAll(stage, delivery, asking)
    conclude(stage, delivery, { asking, asked })
  }
  end(stage, delivery)
  pump(stage, (next) => startRound(stage, next))
}

type Asking = {
  readonly target: Target
  readonly plan: Extract<Plan, { type: 'post' }>
  readonly signed: Readonly<Record<string, string>>
  readonly now: number
}

const onlyOne: Extract<Plan, { type: 'post' }> = {
  type: 'post',
  at: [0],
  later: [],
  isUntried: false,
}

/** URL, headers, secret and whether the destination is on are read at each try. `null`: nobody is asked. */
const planFor = (stage: Stage, delivery: Delivery): Asking | null => {
  const { chain, row } = delivery
  const target = targetOf(stage, chain.lane)
  const now = stage.deps.clock().getTime()
  if (!target || !isServed(target.destination, chain.partition) || isWithdrawn(stage, delivery))
    return giveUp(stage, delivery, 'cancelled')
  if (isForgotten(stage, delivery, target.destination.workspaceId))
    return giveUp(stage, delivery, 'cancelled')
  if (row && isExpired(row.firstTryAt, now)) return giveUp(stage, delivery, 'expired')
  // Too late to settle under this lease: left alone, the row is claimed again.
  if (row && now > row.leaseUntil - stage.limits.leaseMarginMs) return null
  const plan =
    row === null && isOneFree(target, now)
      ? onlyOne
      : planRound(usableOf(target, row, now), row?.isLast ?? false)
  if (plan.type === 'post')
    return { target, plan, now, signed: signedHeaders(target.destination, delivery, now) }
  if (plan.type === 'die') return giveUp(stage, delivery, plan.reason)
  if (plan.type === 'hold') hold(stage, delivery)
  else holdShortly(stage, delivery)
  return null
}

/** The usual case. */
const isOneFree = ({ urls }: Target, now: number): boolean => {
  const [only] = urls
  return urls.length === 1 && only !== undefined && standingOf(only.health, now) === 'free'
}

const giveUp = (stage: Stage, delivery: Delivery, reason: string): null => {
  const { row } = delivery
  const [attempts, firstTryAt] = [row?.attempts ?? 0, row?.firstTryAt ?? null]
  bury(stage, delivery, { reason, status: null, attempts, firstTryAt })
  return null
}

type Asked = { readonly url: string; readonly result: PostResult; readonly isWell: boolean }

type Ended = { readonly asking: Asking; readonly asked: readonly Asked[] }

const conclude = (stage: Stage, delivery: Delivery, { asking, asked }: Ended): void => {
  const { plan, now } = asking
  const { row } = delivery
  const verdict = decideRound(
    asked.map(({ result }) => result.answer),
    plan.isUntried || asked.length < plan.at.length + plan.later.length,
  )
  const tries = verdict.type === 'ours' ? 0 : 1
  const tried = {
    now,
    attempts: (row?.attempts ?? 0) + tries,
    firstTryAt: row?.firstTryAt ?? (tries === 0 ? null : now),
  }
  for (const { url, result } of asked) {
    const isSuspended = delivery.chain.of !== null
    const attempt = tried.attempts
    recordAttempt(stage, { delivery, url, result, attempt, startedAt: now, isSuspended })
    meterAttempt(stage.meter, result)
    stage.deps.alerts?.answered(delivery.chain.lane.destinationId, url, result)
    if (isTimeout(result)) warnTimeout(stage, delivery, url)
  }
  meterRound(stage.meter, {
    verdict: verdict.type,
    isFirst: tried.attempts === 1 && !row?.recoveryId,
    lagMs: now - delivery.receivedAt,
    sinceMs: stage.deps.clock().getTime() - delivery.receivedAt,
  })
  if (verdict.type === 'delivered' && !row) return
  // To URLs that are left alone only a last try goes, and after it there is none.
  const isForced = (row?.isLast ?? false) && !asked.some((one) => one.isWell)
  follow(stage, delivery, { verdict, tried, urls: asked.map(({ url }) => url), isForced })
}

const postAll = async (
  stage: Stage,
  delivery: Delivery,
  asking: Asking,
): Promise<readonly Asked[]> => {
  const { at, later } = asking.plan
  const post = async (place: number) => {
    const now = stage.deps.clock().getTime()
    const asked = await postOne(stage, delivery, { ...asking, place, now })
    // The others of the round run on; this URL has room for another one.
    offer(stage, delivery.chain.lane)
    pump(stage, (next) => startRound(stage, next))
    return asked
  }
  const asked = await Promise.all(at.map(post))
  if (later.length === 0 || asked.some(({ result }) => result.answer.type === 'delivered'))
    return asked
  const until = latestStart(stage, delivery)
  const others = await Promise.all(
    later.map((place) =>
      whenRoom(stage, asking.target.urls[place] as UrlEntry, { until, go: () => post(place) }),
    ),
  )
  return [...asked, ...others.filter((other) => other !== null)]
}

/** Whoever waits for room is asked neither when the lease is about to end nor when the window is over. */
const latestStart = ({ limits }: Stage, { row }: Delivery): number =>
  row === null
    ? Number.POSITIVE_INFINITY
    : Math.min(row.leaseUntil - limits.leaseMarginMs, windowEnd(row.firstTryAt) - 1)

type Posting = {
  readonly target: Target
  readonly place: number
  readonly signed: Readonly<Record<string, string>>
  readonly now: number
}

const postOne = async (stage: Stage, delivery: Delivery, posting: Posting): Promise<Asked> => {
  const { target, place, signed, now } = posting
  const entry = target.urls[place] as UrlEntry
  const { health, url } = entry
  const { fixed, tls } = preparedOf(target.destination.webhooks[place] as Webhook)
  const headers = [...fixed]
  for (const name in signed) headers.push(name, signed[name] as string)
  const isRejecting = health.state === 'rejecting'
  const wasWell = isWell(health)
  const isLast = delivery.row?.isLast ?? false
  const number = begin(health, now)
  entry.usedAt = now
  const { body } = delivery
  const result = await stage.deps.post(tls ? { url, headers, body, tls } : { url, headers, body })
  const { answer } = result
  // Any one success settles the message; the other URLs run to their end and are not tried again.
  if (answer.type === 'delivered') settleOnce(delivery)
  const then = stage.deps.clock().getTime()
  const change = answered(health, number, { answer, now: then, isLast, random: stage.random })
  if (change) urlChanged(stage, entry, { change, origin: 'here' })
  if (entry.waiting > 0) entry.room.ring()
  // A URL that refuses everything says nothing about this message.
  const isExcused = isRejecting && !isLast && answer.type === 'final' && answer.status !== null
  if (!isExcused) return { url, result, isWell: wasWell }
  const excused = { ...answer, type: 'temporary' as const, retryAfterMs: null }
  return { url, result: { ...result, answer: excused }, isWell: wasWell }
}

const settleOnce = (delivery: Delivery): void => {
  delivery.chain.lane.deliveredAt = performance.now()
  if (delivery.open?.left.includes(delivery.chain.lane.destinationId)) settle(delivery, 'delivered')
}

type Prepared = { readonly fixed: readonly string[]; readonly tls: PostTls | null }

const prepared = new WeakMap<Webhook, Prepared>()

/** What is the same in each of its requests. */
const preparedOf = (webhook: Webhook): Prepared => {
  const known = prepared.get(webhook)
  if (known) return known
  const own = Object.entries(webhook.headers).filter(([name]) => !isReservedHeader(name))
  // Names and values in turn, as the port takes them without looking.
  const fixed = ['Content-Type', 'application/json', ...own.flat()]
  const { ca, clientCertificate } = webhook
  const tls =
    ca === null && clientCertificate === null ? null : { ca: ca ?? '', ...clientCertificate }
  const made = { fixed, tls }
  prepared.set(webhook, made)
  return made
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

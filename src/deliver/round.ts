// One round: a message posted to every usable URL of its destination in parallel, and what follows.
import type { DeadReason } from '../domain/dead-reason.ts'
import { isExpired, windowEnd } from '../domain/retry.ts'
import { decideRound, type Plan, planRound } from '../domain/round.ts'
import { signedHeaders } from '../domain/signature.ts'
import { standingOf } from '../domain/url-health.ts'
import type { PostResult } from '../http/post.ts'
import { recordAttempt } from './attempts.ts'
import { follow } from './follow.ts'
import { isForgotten } from './forgotten.ts'
import { hold, holdShortly } from './hold.ts'
import { end, offer, pump } from './lanes.ts'
import { meterAttempt, meterRound } from './meter.ts'
import { bury } from './park.ts'
import { type Asked, beginPost, endPost, postOne } from './posting.ts'
import { isServed, isWithdrawn } from './replays.ts'
import type { Delivery, Stage } from './stage.ts'
import { type Target, targetOf, type UrlEntry, usableOf, whenRoom } from './urls.ts'

export const startRound = (stage: Stage, delivery: Delivery): void => {
  try {
    const asking = planFor(stage, delivery)
    if (!asking) over(stage, delivery)
    else if (asking.plan.at.length === 1 && asking.plan.later.length === 0)
      askOne(stage, delivery, asking)
    else askAll(stage, delivery, asking).catch(stage.fail)
  } catch (error) {
    stage.fail(error)
  }
}

/** The usual round: one promise, as each more costs as much as the decisions do. */
const askOne = (stage: Stage, delivery: Delivery, asking: Asking): void => {
  const { target, plan, signed, now } = asking
  const place = plan.at[0] as number
  const posted = beginPost(delivery, { target, signed, now, place })
  const heard = (result: PostResult) => {
    try {
      conclude(stage, delivery, { asking, asked: [endPost(stage, delivery, { posted, result })] })
      over(stage, delivery)
    } catch (error) {
      stage.fail(error)
    }
  }
  stage.deps.post(posted.request).then(heard, stage.fail)
}

const askAll = async (stage: Stage, delivery: Delivery, asking: Asking): Promise<void> => {
  conclude(stage, delivery, { asking, asked: await postAll(stage, delivery, asking) })
  over(stage, delivery)
}

const over = (stage: Stage, delivery: Delivery): void => {
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
  if (!target) return giveUp(stage, delivery, 'cancelled')
  // First: of whoever is not to be heard nothing is kept, whatever else speaks against asking.
  if (isForgotten(stage, delivery, target.destination.workspaceId))
    return giveUp(stage, delivery, 'forgotten')
  if (!isServed(target.destination, chain.partition) || isWithdrawn(stage, delivery))
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

const giveUp = (stage: Stage, delivery: Delivery, why: DeadReason | 'forgotten'): null => {
  const { row } = delivery
  const [attempts, firstTryAt] = [row?.attempts ?? 0, row?.firstTryAt ?? null]
  const isForgotten = why === 'forgotten'
  const reason = isForgotten ? 'cancelled' : why
  bury(stage, delivery, { reason, isForgotten, status: null, attempts, firstTryAt })
  return null
}

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

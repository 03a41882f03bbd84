// One request of a round: what goes out to a URL, and what its answer teaches.
import type { Webhook } from '../domain/configuration.ts'
import { isReservedHeader } from '../domain/reserved-header.ts'
import { answered } from '../domain/url-answer.ts'
import { begin, isWell } from '../domain/url-health.ts'
import type { PostRequest, PostResult, PostTls } from '../http/post.ts'
import { settle } from './park.ts'
import type { Delivery, Stage } from './stage.ts'
import { urlChanged } from './url-change.ts'
import type { Target, UrlEntry } from './urls.ts'

export type Asked = { readonly url: string; readonly result: PostResult; readonly isWell: boolean }

export type Posting = {
  readonly target: Target
  readonly place: number
  readonly signed: Readonly<Record<string, string>>
  readonly now: number
}

export const postOne = async (
  stage: Stage,
  delivery: Delivery,
  posting: Posting,
): Promise<Asked> => {
  const posted = beginPost(delivery, posting)
  const result = await stage.deps.post(posted.request)
  return endPost(stage, delivery, { posted, result })
}

/** A request that is about to go out, and how its URL stood then. */
type Posted = {
  readonly request: PostRequest
  readonly entry: UrlEntry
  readonly number: number
  readonly wasWell: boolean
  readonly isRejecting: boolean
}

export const beginPost = (delivery: Delivery, posting: Posting): Posted => {
  const { target, place, signed, now } = posting
  const entry = target.urls[place] as UrlEntry
  const { health, url } = entry
  const { fixed, tls } = preparedOf(target.destination.webhooks[place] as Webhook)
  const headers = fixed.slice()
  for (const name in signed) headers.push(name, signed[name] as string)
  const isRejecting = health.state === 'rejecting'
  const wasWell = isWell(health)
  const number = begin(health, now)
  entry.usedAt = now
  const { body } = delivery
  const request = tls ? { url, headers, body, tls } : { url, headers, body }
  return { request, entry, number, wasWell, isRejecting }
}

type Heard = { readonly posted: Posted; readonly result: PostResult }

export const endPost = (stage: Stage, delivery: Delivery, { posted, result }: Heard): Asked => {
  const { entry, number, wasWell, isRejecting } = posted
  const { health, url } = entry
  const { answer } = result
  const isLast = delivery.row?.isLast ?? false
  // Any one success settles the message; the other URLs run to their end and are not tried again.
  if (answer.type === 'delivered') settleOnce(delivery)
  const now = stage.deps.clock().getTime()
  const change = answered(health, number, { answer, now, isLast, random: stage.random })
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

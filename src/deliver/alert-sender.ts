// Sends what waits in the outbox of alerts: signed, tried again for a day, by whichever process comes first.
import type { Logger } from 'pino'
import { sign } from '../domain/signature.ts'
import type { Post } from '../http/post.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Clock } from '../running.ts'
import { countDead, endAlert, postponeAlert, type Taken, takeAlert } from './alert-store.ts'
import { openSignal, type Signal } from './signal.ts'

export const senderLimits = {
  /** How often it is looked for what is due. */
  lookEveryMs: 2_000,
  /** One that was taken is left alone so long: longer than a request can take. */
  leaseMs: 30_000,
  /** Pauses after the tries of one alert; the last one goes on. */
  pausesMs: [1_000, 5_000, 30_000, 120_000, 600_000] as readonly number[],
  /** It is tried for so long. */
  giveUpMs: 86_400_000,
  /** How long it is remembered that something was told. */
  keepMs: 86_400_000,
}

export type SenderDeps = {
  readonly url: string
  readonly secret: string | null
  readonly post: Post
  readonly sql: Sql
  readonly clock: Clock
  readonly logger: Logger
  readonly limits: typeof senderLimits
  readonly ended: (result: 'sent' | 'given_up') => void
  /** Called before each look; must not throw. */
  readonly looked: () => Promise<void>
}

export type Sender = {
  /** There may be something to send. */
  ring(): void
  /** Waits for what is being sent; the rest stays for another process, or the next start. */
  stop(): Promise<void>
}

type Desk = {
  readonly deps: SenderDeps
  readonly bell: Signal
  /** Taken by the operator, and still in the outbox: it must not go out again. */
  over: Taken | null
  stopping: boolean
}

export const openSender = (deps: SenderDeps): Sender => {
  const desk: Desk = { deps, bell: openSignal(), over: null, stopping: false }
  // Whoever opens it gets it before it does anything.
  const running = Promise.resolve().then(() => run(desk))
  return {
    ring: () => desk.bell.ring(),
    stop: async () => {
      desk.stopping = true
      desk.bell.ring()
      await running
    },
  }
}

const run = async (desk: Desk): Promise<void> => {
  const { deps, bell } = desk
  while (!desk.stopping) {
    try {
      await deps.looked()
      if (await sendOne(desk)) continue
    } catch (error) {
      deps.logger.error({ err: error }, 'alert.failed')
    }
    if (!desk.stopping) await bell.wait(deps.limits.lookEveryMs)
  }
}

/** Whether there may be another one. */
const sendOne = async (desk: Desk): Promise<boolean> => {
  const { deps, over } = desk
  if (over) await end(desk, over)
  const at = deps.clock()
  const until = new Date(at.getTime() + deps.limits.leaseMs)
  const alert = await takeAlert(deps.sql, { at, until })
  if (!alert) return false
  const { type, about } = alert
  const { answer, status } = await deps.post(await requestOf(deps, alert))
  if (answer.type === 'delivered') {
    desk.over = alert
    deps.ended('sent')
    deps.logger.info({ type, ...about }, 'alert.sent')
    await end(desk, alert)
    return true
  }
  deps.logger.warn({ type, status, reason: answer.reason, tries: alert.tries }, 'alert.refused')
  await tryLater(desk, alert)
  return true
}

const requestOf = async ({ sql, url, secret }: SenderDeps, alert: Taken) => {
  const { id, type, about, at } = alert
  const count = type === 'dead_letter' ? { count: Number(await countDead(sql, alert)) } : {}
  const body = Buffer.from(
    JSON.stringify({ version: 1, id, type, timestamp: at, ...about, ...count }),
  )
  const signature = secret === null ? {} : { 'X-Signature': sign(secret, body) }
  return { url, headers: { 'Content-Type': 'application/json', ...signature }, body }
}

const end = async (desk: Desk, alert: Taken): Promise<void> => {
  const { sql, clock, limits } = desk.deps
  await endAlert(sql, alert, new Date(clock().getTime() - limits.keepMs))
  desk.over = null
}

const tryLater = async (desk: Desk, alert: Taken): Promise<void> => {
  const { sql, clock, limits, logger, ended } = desk.deps
  const pauseMs = limits.pausesMs[alert.tries - 1] ?? limits.pausesMs.at(-1) ?? 0
  const next = clock().getTime() + pauseMs
  if (next - alert.at.getTime() < limits.giveUpMs) return postponeAlert(sql, alert, new Date(next))
  await end(desk, alert)
  ended('given_up')
  const { type, about, tries } = alert
  logger.error({ type, ...about, tries }, 'alert.given_up')
}

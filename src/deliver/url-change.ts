// What follows when a URL's state or breaker changes: who is told, and what waits for it.
import type { UrlChange } from '../domain/url-answer.ts'
import { shed } from './hold.ts'
import { offer } from './lanes.ts'
import { recoverHealed } from './recover.ts'
import type { Stage } from './stage.ts'
import { gateOf, type UrlEntry } from './urls.ts'

export type UrlEvent = UrlChange & {
  readonly destinationId: number
  readonly url: string
  /** `elsewhere`: another process found it, or this one before it was started again. */
  readonly origin: 'here' | 'elsewhere'
}

export const urlChanged = (
  stage: Stage,
  entry: UrlEntry,
  { change, origin }: { readonly change: UrlChange; readonly origin: UrlEvent['origin'] },
): void => {
  const { destinationId, url } = entry
  const { from, to, reason, status } = change
  if (origin === 'here' && from.state !== to.state) entry.isUnsaved = true
  const isBad = to.state !== 'ok' || to.breaker === 'open'
  stage.deps.logger[isBad ? 'warn' : 'info'](
    { destinationId, host: URL.parse(url)?.host, from, to, reason, status, origin },
    'url.changed',
  )
  const event = { ...change, destinationId, url, origin }
  stage.deps.onUrlChange?.(event)
  const news = stage.deps.alerts?.urlNews(event)
  // Written with the state; of one kind the last one is enough.
  if (news) entry.news = [...entry.news.filter(({ key }) => key !== news.key), news]
  if (from.state === 'held_tls' && to.state === 'ok')
    recoverHealed(stage, destinationId).catch(stage.fail)
  const lane = stage.lanes.get(destinationId)
  if (!lane) return
  lane.askAt = 0
  const gate = gateOf(stage, lane, stage.deps.clock().getTime())
  if (gate === 'shut') shed(stage, lane)
  else {
    stage.desk.claimAt = 0
    stage.desk.bell.ring()
    offer(stage, lane)
  }
}

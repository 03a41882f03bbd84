// Shares the states of URLs between processes and restarts, and looks whether held certificates are good now.
import { adopt, heal } from '../domain/url-answer.ts'
import { urlHealthLimits } from '../domain/url-health.ts'
import { urlKey } from '../domain/url-key.ts'
import { forgetIdle } from './idle.ts'
import { pump } from './lanes.ts'
import { startRound } from './round.ts'
import type { Stage } from './stage.ts'
import { urlChanged } from './url-change.ts'
import {
  forgetUrls,
  readUrls,
  saveUrls,
  takeProbes,
  type UrlKey,
  type UrlRow,
} from './url-store.ts'
import { entryOf, findUrl, type UrlEntry } from './urls.ts'

/** Before anything is posted: what was held before stays held. */
export const urlsReady = (stage: Stage): Promise<void> => {
  stage.urls.ready ??= shareUrls(stage).catch((error) => {
    stage.urls.ready = null
    throw error
  })
  return stage.urls.ready
}

/** One turn: what changed here is written, then what changed elsewhere is taken over. */
export const tendUrls = async (stage: Stage): Promise<void> => {
  try {
    await shareUrls(stage)
    if (!stage.stopping) await probeHeld(stage)
  } catch (error) {
    stage.deps.logger.error({ err: error }, 'urls.failed')
  }
  pump(stage, (delivery) => startRound(stage, delivery))
}

const shareUrls = async (stage: Stage): Promise<void> => {
  forgetIdle(stage, stage.deps.clock().getTime())
  await save(stage)
  const rows = await readUrls(stage.deps.pool)
  const told = new Set<UrlEntry>()
  const gone: UrlKey[] = []
  for (const row of rows) {
    const entry = configured(stage, row)
    if (!entry) {
      gone.push(row)
      continue
    }
    told.add(entry)
    if (!entry.isUnsaved) takeOver(stage, entry, row)
  }
  for (const entry of stage.urls.entries.values()) {
    if (entry.isUnsaved || told.has(entry)) continue
    const change = heal(entry.health, stage.deps.clock().getTime())
    if (change) urlChanged(stage, entry, { change, origin: 'elsewhere' })
  }
  await forgetUrls(stage.deps.pool, gone)
}

const configured = (stage: Stage, { destinationId, url: key }: UrlKey): UrlEntry | null => {
  const destination = stage.deps.live.now().destinations.get(destinationId)
  const webhook = destination?.webhooks.find(({ url }) => urlKey(url) === key)
  if (!webhook) return null
  return findUrl(stage, destinationId, webhook.url) ?? entryOf(stage, destinationId, webhook)
}

const takeOver = (stage: Stage, entry: UrlEntry, row: UrlRow): void => {
  const { state, reason, status } = row
  const spread = 0.5 + stage.random() / 2
  const probeAt = stage.deps.clock().getTime() + urlHealthLimits.rejectingProbeMs * spread
  const told = { state, reason, status, since: row.since.getTime() }
  const change = adopt(entry.health, told, probeAt)
  if (change) urlChanged(stage, entry, { change, origin: 'elsewhere' })
}

/** A state and what is told of it in one transaction: a kill between the two would leave it untold for good. */
const save = async (stage: Stage): Promise<void> => {
  const { pool, alerts, clock } = stage.deps
  const unsaved = [...stage.urls.entries.values()].filter(({ isUnsaved }) => isUnsaved)
  if (unsaved.length === 0) return
  const { rows, well } = statesOf(unsaved)
  const news = unsaved.map((entry) => entry.news)
  for (const entry of unsaved) Object.assign(entry, { isUnsaved: false, news: [] })
  const probeAt = new Date(clock().getTime() + probeEveryMs)
  try {
    const written = await pool.transaction(async (tx) => {
      await saveUrls(tx, rows, probeAt)
      await forgetUrls(tx, well)
      return (await alerts?.write(tx, news.flat())) ?? []
    })
    alerts?.written(written)
  } catch (error) {
    unsaved.forEach((entry, at) => {
      const later = new Set(entry.news.map(({ key }) => key))
      const earlier = (news[at] ?? []).filter(({ key }) => !later.has(key))
      Object.assign(entry, { isUnsaved: true, news: [...earlier, ...entry.news] })
    })
    throw error
  }
}

const statesOf = (entries: readonly UrlEntry[]) => {
  const rows: UrlRow[] = []
  const well: UrlKey[] = []
  for (const { destinationId, url, health } of entries) {
    const { state, reason, status } = health
    if (state === 'ok') well.push({ destinationId, url })
    else rows.push({ destinationId, url, state, reason, status, since: new Date(health.since) })
  }
  return { rows, well }
}

/** When the stage ends: what was found last outlives it. */
export const saveLast = (stage: Stage): Promise<void> =>
  save(stage).catch((error) => stage.deps.logger.error({ err: error }, 'urls.failed'))

/** A held certificate is looked at this often, by one process for all. */
const probeEveryMs = 60_000
const probesMax = 20

const probeHeld = async (stage: Stage): Promise<void> => {
  const { probe, pool, clock } = stage.deps
  if (!probe) return
  const at = clock().getTime()
  const turn = { at: new Date(at), next: new Date(at + probeEveryMs), limit: probesMax }
  const keys = await takeProbes(pool, turn)
  await Promise.all(
    keys.map(async (key) => {
      const entry = configured(stage, key)
      if (!entry) return
      const result = await probe(entry.url, entry.tls ?? undefined)
      if (result !== 'ok' || entry.health.state !== 'held_tls') return
      const change = heal(entry.health, clock().getTime())
      if (change) urlChanged(stage, entry, { change, origin: 'here' })
    }),
  )
}

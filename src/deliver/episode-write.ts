// One transaction of what was found out of URLs that fail: read what is known, decide, write it and tell operators.
import { beginningOf, knownOf, type Step, stepOf, toldOf } from '../domain/episode.ts'
import type { Answer } from '../domain/round.ts'
import type { Sql } from '../postgres/sql.ts'
import { type AlertRow, type Written, writeAlerts } from './alert-store.ts'
import {
  endEpisodes,
  leaveSayings,
  lockSayings,
  readTold,
  type Said,
  type SayingRow,
  saySo,
  type UrlOf,
} from './episode-store.ts'

/** The share of failures that a URL reached; 0: it recovered. */
export type Level = UrlOf & {
  readonly level: number
  /** The answer that did it. */
  readonly answer: Answer
}

export type WriteDeps = {
  readonly owner: string
  /** What is told of it. */
  readonly newsOf: (level: Level, at: Date) => AlertRow
  /** Keys of what says, in whatever way, that a URL is well. */
  readonly recoveredKeys: (url: UrlOf) => readonly string[]
  readonly limits: {
    readonly againAfterMs: number
    readonly rowsMax: number
    readonly fullMs: number
    readonly watchDeadMs: number
  }
}

/** `news`: some of it is on its way. `later`: what operators do not know yet, and when it is looked at again. */
export type Outcome = {
  readonly isNew: boolean
  readonly later: readonly { readonly level: Level; readonly notBefore: number }[]
}

export type Batch = { readonly due: readonly Level[]; readonly at: Date }

type Planned = {
  readonly level: Level
  readonly step: Step
  readonly since: Date
  readonly toldAt: Date | null
  /** The highest level that was told. */
  readonly known: number
  readonly news: AlertRow
}

/** Of distinct URLs. */
export const writeLevels = async (deps: WriteDeps, tx: Sql, batch: Batch): Promise<Outcome> => {
  const { owner, limits } = deps
  const { at } = batch
  const planned = await plan(deps, tx, batch)
  const of = (step: Step) => planned.filter((one) => one.step === step)
  // That a URL fails is told once an hour, and so that it is well no more often.
  const { againAfterMs } = limits
  const failing = await tell(deps, tx, { planned: of('failing'), againAfterMs })
  const recovered = await tell(deps, tx, { planned: of('recovered'), againAfterMs: 0 })
  const toldFailing = of('failing').map((one) => withTold(one, failing.get(one.news.key), at))
  const isRecovered = ({ news }: Planned) => recovered.get(news.key)?.outcome === 'new'
  const ended = [...of('over'), ...of('recovered').filter(isRecovered)]
  await saySo(tx, owner, [...of('known'), ...toldFailing].map(saidOf))
  await leaveSayings(tx, owner, levelsOf(of('left')))
  await endEpisodes(tx, levelsOf(ended))
  const isUntold = ({ known, level }: Planned) => known < level.level
  const waiting = [
    ...toldFailing.filter(isUntold),
    ...of('recovered').filter((one) => !isRecovered(one)),
  ]
  const later = waiting.map(({ level, news }) => ({
    level,
    notBefore: againAt(limits, failing.get(news.key) ?? null, at),
  }))
  const isNew = [...failing.values(), ...recovered.values()].some(
    ({ outcome }) => outcome === 'new',
  )
  return { isNew, later }
}

const levelsOf = (planned: readonly Planned[]) => planned.map(({ level }) => level)

const urlKey = ({ destinationId, url }: UrlOf): string => `${destinationId} ${url}`

const plan = async (deps: WriteDeps, tx: Sql, { due, at }: Batch): Promise<readonly Planned[]> => {
  const { owner, newsOf, recoveredKeys, limits } = deps
  const rows = await lockSayings(tx, due, new Date(at.getTime() - limits.watchDeadMs))
  const keysOf = (level: Level) => (level.level === 0 ? recoveredKeys(level) : [])
  const told = await readTold(tx, due.flatMap(keysOf))
  const byUrl = Map.groupBy(rows, (row: SayingRow) => urlKey(row))
  return due.map((level) => {
    const times = keysOf(level).flatMap((key) => told.get(key)?.getTime() ?? [])
    const recoveredAt = times.length === 0 ? null : new Date(Math.max(...times))
    const episode = { owner, sayings: byUrl.get(urlKey(level)) ?? [], recoveredAt }
    return {
      level,
      step: stepOf(episode, level.level),
      since: beginningOf(episode) ?? at,
      toldAt: toldOf(episode),
      known: knownOf(episode),
      news: newsOf(level, at),
    }
  })
}

type Telling = { readonly planned: readonly Planned[]; readonly againAfterMs: number }

const tell = async (
  { limits }: WriteDeps,
  tx: Sql,
  { planned, againAfterMs }: Telling,
): Promise<ReadonlyMap<string, Written>> => {
  if (planned.length === 0) return new Map()
  // URLs that differ in their query alone are told as one.
  const rows = [...new Map(planned.map(({ news }) => [news.key, news])).values()]
  const written = await writeAlerts(tx, { rows, againAfterMs, max: limits.rowsMax })
  return new Map(written.map((one) => [one.key, one]))
}

/** Told now, or by another process since it began; what was told of an earlier episode is not told of this one. */
const withTold = (one: Planned, written: Written | undefined, at: Date): Planned => {
  if (!written || written.outcome === 'full') return one
  const toldAt = written.toldAt ?? at
  if (written.outcome === 'told' && toldAt < one.since) return one
  return { ...one, toldAt, known: one.level.level }
}

/** Of what was not told yet a later look must not find that it is known. */
const saidOf = ({ level: { destinationId, url, level }, since, toldAt, known }: Planned): Said => ({
  ...{ destinationId, url, since, toldAt },
  level: toldAt === null ? level : known,
})

const againAt = (
  { fullMs, againAfterMs }: WriteDeps['limits'],
  written: Written | null,
  at: Date,
): number => {
  const soon = at.getTime() + fullMs
  // Where it was told long ago it still waits to be sent.
  if (!written?.toldAt || written.outcome === 'full') return soon
  return Math.max(soon, written.toldAt.getTime() + againAfterMs)
}

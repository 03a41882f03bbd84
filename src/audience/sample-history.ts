// Folding calls of the log into users in memory, for leaves that nobody keeps yet: nothing is written.
import { admits, type BoundLeaf } from '../domain/condition/evaluate.ts'
import type { Feed } from '../domain/condition/leaf.ts'
import { effectiveTime } from '../domain/condition/window.ts'
import { type Identity, identityKinds, whoOf } from '../domain/identity.ts'
import type { Json, Message } from '../domain/message.ts'
import type { Codec, Range, Source, Topic } from '../log/log.ts'
import type { Sql } from '../postgres/sql.ts'
import { numberList, textList } from './lists.ts'
import { setSummary, summaryOf, type UserState } from './state.ts'

/** A leaf under an id that no stored one has. */
export type SampledLeaf = BoundLeaf & { readonly feeds: readonly Feed[] }

export type Sampling = {
  readonly sql: Sql
  readonly source: Source
  readonly codec: Codec<Message>
  readonly workspaceId: number
  readonly users: ReadonlyMap<number, UserState>
  readonly leaves: readonly SampledLeaf[]
  /** Entries read at most, over all partitions: the newest. */
  readonly callsMax: number
  /** Whether to stop with what was read so far. */
  readonly isOver: () => boolean
}

export type Sampled = {
  readonly calls: number
  /** Whether all that the log holds was read, as a back-fill would. */
  readonly isWhole: boolean
}

const topics: readonly Topic[] = ['calls', 'calls.import']

export const foldSample = async (sampling: Sampling): Promise<Sampled> => {
  const ranges = await rangesOf(sampling)
  const seen = new Set<string>()
  let calls = 0
  for (const { cut: _, ...range } of ranges)
    for await (const { entries } of sampling.source.read(range)) {
      if (sampling.isOver()) return { calls, isWhole: false }
      calls += entries.length
      const messages = await sampling.codec.decode(entries.map(({ value }) => value))
      await foldMessages(sampling, messages.filter(isNew(seen)))
    }
  return { calls, isWhole: ranges.every(({ cut }) => !cut) }
}

/** Each partition gives its share, from its end backwards. */
const rangesOf = async ({ source, callsMax }: Sampling) => {
  const bounds = await Promise.all(topics.map((topic) => source.bounds(topic)))
  const all = topics.flatMap((topic, at) =>
    (bounds[at] ?? []).map(({ start, end }, partition) => ({ topic, partition, start, end })),
  )
  const total = all.reduce((sum, { start, end }) => sum + Number(end - start), 0)
  const part = total <= callsMax ? 1 : callsMax / total
  return all.flatMap(({ topic, partition, start, end }): readonly (Range & { cut: boolean })[] => {
    const wanted = part === 1 ? end - start : BigInt(Math.floor(Number(end - start) * part))
    const from = end - wanted
    const range = { topic, partition, from, until: end, cut: from > start }
    return range.cut || from < end ? [range] : []
  })
}

/** A call that came twice counts once. */
const isNew =
  (seen: Set<string>) =>
  ({ digest }: Message): boolean => {
    const text = Buffer.from(digest).toString('latin1')
    if (seen.has(text)) return false
    seen.add(text)
    return true
  }

type Fed = {
  readonly message: Message
  readonly subject: Identity
  readonly properties: Json | undefined
  readonly feeds: readonly { readonly leaf: SampledLeaf; readonly step: number }[]
}

const foldMessages = async (sampling: Sampling, messages: readonly Message[]): Promise<void> => {
  const fed = messages.flatMap((message) => fedBy(message, sampling) ?? [])
  const keys = await readKeys(
    sampling.sql,
    fed.map(({ subject }) => subject),
  )
  for (const { message, subject, properties, feeds } of fed) {
    const user = sampling.users.get(keys.get(subject.text) ?? -1)
    if (user === undefined) continue
    const { timestamp, receivedAt: r, messageId: id } = message
    const observed = { te: effectiveTime(timestamp, r), r, id, properties }
    for (const { leaf, step } of feeds) {
      const held = summaryOf(user, leaf) ?? leaf.kind.empty
      setSummary(user, leaf, leaf.kind.fold(held, observed, step))
    }
  }
}

const fedBy = (message: Message, { leaves, workspaceId }: Sampling): Fed | null => {
  if (message.workspaceId !== workspaceId || message.type !== 'track') return null
  const who = whoOf(message)
  if (message.filtered !== null || who.type === 'nobody') return null
  const named = leaves.flatMap((leaf) =>
    leaf.feeds.flatMap((feed) => (feed.event === message.event ? [{ leaf, feed }] : [])),
  )
  if (named.length === 0) return null
  const { properties } = JSON.parse(Buffer.from(message.body).toString()) as {
    readonly properties?: Json
  }
  const feeds = named.flatMap(({ leaf, feed: { where, step } }) =>
    where === null || admits(where, properties) ? [{ leaf, step }] : [],
  )
  return { message, subject: who.subject, properties, feeds }
}

/** Whose each identity is by now. */
const readKeys = async (
  sql: Sql,
  identities: readonly Identity[],
): Promise<ReadonlyMap<string, number>> => {
  const unique = [...new Map(identities.map((each) => [each.text, each])).values()]
  if (unique.length === 0) return new Map()
  const { rows } = await sql.query<{ at: number; key: number }>(
    `select w.at::float8 as at, i.user_key::float8 as key
       from unnest($1::int[], $2::smallint[], $3::text[]) with ordinality
         as w(workspace_id, kind, value, at)
       join identity i on i.workspace_id = w.workspace_id and i.kind = w.kind
        and i.value = w.value collate "C"`,
    [
      numberList(unique.map(({ workspaceId }) => workspaceId)),
      numberList(unique.map(({ kind }) => identityKinds[kind])),
      textList(unique.map(({ value }) => value)),
    ],
  )
  return new Map(rows.map(({ at, key }) => [(unique[at - 1] as Identity).text, key]))
}

// Counts calls at the far ends of the line: in the log, in what was metered, and at a webhook.
import { openCodecs } from '../../src/log/avro.ts'
import type { Source } from '../../src/log/log.ts'
import type { MillraceProcess } from './process.ts'
import type { Receiver } from './receiver.ts'

/** How often each message id stands in a topic of calls. */
export const countLog = async (
  source: Source,
  topic: 'calls' | 'calls.import' = 'calls',
): Promise<ReadonlyMap<string, number>> => {
  const { call: codec } = await openCodecs({})
  const counts = new Map<string, number>()
  const bounds = await source.bounds(topic)
  for (const [partition, { start, end }] of bounds.entries())
    for await (const batch of source.read({ topic, partition, from: start, until: end }))
      for (const { messageId } of await codec.decode(batch.entries.map(({ value }) => value)))
        counts.set(messageId, (counts.get(messageId) ?? 0) + 1)
  return counts
}

/** How often each call, by its number, was posted. */
export const countPosts = ({ requests }: Receiver): ReadonlyMap<number, number> => {
  const counts = new Map<number, number>()
  for (const { json } of requests) {
    const { n } = json['properties'] as { readonly n: number }
    counts.set(n, (counts.get(n) ?? 0) + 1)
  }
  return counts
}

const daysMs = 100 * 86_400_000

/** What the projector metered, duplicates once: in the months around an instant, by workspace and source. */
export const countMetered = async (
  millrace: MillraceProcess,
  around = new Date(),
): Promise<Readonly<Record<string, number>>> => {
  const day = (ms: number) => new Date(around.getTime() + ms).toISOString().slice(0, 10)
  const { workspaces } = await ask<{
    readonly workspaces: readonly { readonly id: number; readonly name: string }[]
  }>(millrace, '/admin/v1/workspaces')
  const sums: Record<string, number> = {}
  for (const { id, name } of workspaces) {
    const query = `workspaceId=${id}&from=${day(-daysMs)}&until=${day(daysMs)}`
    const { days } = await ask<{
      readonly days: readonly { readonly source: string; readonly calls: number }[]
    }>(millrace, `/admin/v1/usage?${query}`)
    for (const { source, calls } of days) {
      const key = `${name}/${source}`
      sums[key] = (sums[key] ?? 0) + calls
    }
  }
  return sums
}

const ask = async <T>(millrace: MillraceProcess, path: string): Promise<T> => {
  const response = await fetch(new URL(path, millrace.adminUrl), {
    headers: { authorization: `Bearer ${millrace.token}` },
  })
  if (response.status !== 200) throw new Error(await response.text())
  return (await response.json()) as T
}

export const totalOf = (sums: Readonly<Record<string, number>>): number =>
  Object.values(sums).reduce((sum, calls) => sum + calls, 0)

/** Applies a configuration file over the admin API. */
export const applyFile = async (millrace: MillraceProcess, file: object): Promise<void> => {
  const response = await fetch(new URL('/admin/v1/apply', millrace.adminUrl), {
    method: 'POST',
    headers: { authorization: `Bearer ${millrace.token}`, 'content-type': 'application/json' },
    body: JSON.stringify(file),
  })
  if (response.status !== 200) throw new Error(await response.text())
}

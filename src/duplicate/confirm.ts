// Settles what Bloom filters only suspect, by reading the page that would hold the earlier record.
import type { Sql } from '../postgres/sql.ts'
import { entryBytes, type Judged, msInHourOf, offsetOf, pageOf } from './entry.ts'
import type { Segment } from './remembered.ts'
import { loadPages } from './store.ts'
import { hourMs } from './window.ts'

export type Doubt = {
  readonly index: number
  readonly entry: Judged
  readonly segment: Segment
  /** The earliest receipt that counts. */
  readonly start: number
}

/** Bounds what is in memory at once: pages are about 1.5 KB. */
const pagesPerQuery = 512

/** The indexes of doubts that are true; an entry counts only at an offset before the record's own. */
export const confirm = async (
  sql: Sql,
  words: Uint32Array,
  doubts: readonly Doubt[],
): Promise<ReadonlySet<number>> => {
  const confirmed = new Set<number>()
  for (const group of groupsOf(byPage(words, doubts))) {
    const pages = await loadPages(
      sql,
      group.map(([, [first, page]]) => ({ segmentId: first.segment.id, page })),
    )
    const found = new Map(pages.map((page) => [`${page.segmentId} ${page.page}`, page.entries]))
    for (const [name, [first, , others]] of group) {
      const entries = found.get(name)
      if (!entries) continue
      for (const doubt of [first, ...others])
        if (isOnPage(doubt, entries)) confirmed.add(doubt.index)
    }
  }
  return confirmed
}

type OfPage = readonly [first: Doubt, page: number, others: Doubt[]]

const byPage = (words: Uint32Array, doubts: readonly Doubt[]) => {
  const pages = new Map<string, OfPage>()
  for (const doubt of doubts) {
    const page = pageOf(words[doubt.index * 4] as number, doubt.segment.pageBits)
    const name = `${doubt.segment.id} ${page}`
    const known = pages.get(name)
    if (known) known[2].push(doubt)
    else pages.set(name, [doubt, page, []])
  }
  return [...pages]
}

const groupsOf = <T>(all: readonly T[]): readonly (readonly T[])[] =>
  Array.from({ length: Math.ceil(all.length / pagesPerQuery) }, (_, group) =>
    all.slice(group * pagesPerQuery, (group + 1) * pagesPerQuery),
  )

const isOnPage = ({ entry, segment, start }: Doubt, entries: Buffer) => {
  for (let at = 0; at < entries.length; at += entryBytes) {
    if (entries.compare(entry.digest, 0, 16, at, at + 16) !== 0) continue
    const receivedAt = segment.hour * hourMs + msInHourOf(entries, at)
    if (receivedAt >= start && offsetOf(segment.base, entries, at) < entry.offset) return true
  }
  return false
}

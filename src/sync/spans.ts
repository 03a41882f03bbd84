// Spans of rows that follow one another in their shard: a thousand rows are a few of them.

export type Span = { readonly shard: number; readonly first: number; readonly last: number }

type Place = { readonly shard: number; readonly seq: number }

/** Of nothing but these rows; each shard's are given in order. */
export const spansOf = (rows: readonly Place[]): readonly Span[] => {
  const spans: Span[] = []
  const open = new Map<number, number>()
  for (const { shard, seq } of rows) {
    const at = open.get(shard)
    const before = at === undefined ? undefined : spans[at]
    if (at !== undefined && before?.last === seq - 1) spans[at] = { ...before, last: seq }
    else open.set(shard, spans.push({ shard, first: seq, last: seq }) - 1)
  }
  return spans
}

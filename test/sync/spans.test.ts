import fc from 'fast-check'
import { expect, test } from 'vitest'
import { spansOf } from '../../src/sync/spans.ts'

test('spans cover the rows given and nothing else, and a gap ends one', () => {
  const shardsOfRows = fc.array(fc.uniqueArray(fc.nat(30), { maxLength: 20 }), { maxLength: 4 })
  fc.assert(
    fc.property(shardsOfRows, fc.func(fc.nat(3)), (shards, turn) => {
      const left = shards.map((seqs, shard) =>
        seqs.toSorted((a, b) => a - b).map((seq) => ({ shard, seq })),
      )
      // Each shard’s in order, the shards in any.
      const rows: { shard: number; seq: number }[] = []
      while (left.some((some) => some.length > 0)) {
        const some = left.filter(({ length }) => length > 0)
        rows.push(...(some[turn(rows.length) % some.length]?.splice(0, 1) ?? []))
      }
      const spans = spansOf(rows)
      const covered = spans.flatMap(({ shard, first, last }) =>
        Array.from({ length: last - first + 1 }, (_, at) => `${shard}/${first + at}`),
      )
      expect(covered.sort()).toEqual(rows.map(({ shard, seq }) => `${shard}/${seq}`).sort())
      for (const { shard, last } of spans)
        expect(spans).not.toContainEqual(expect.objectContaining({ shard, first: last + 1 }))
    }),
  )
})

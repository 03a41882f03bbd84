// Judging shares its thread with live calls: however much stands on one line, it lets others in between.
import { expect, test } from 'vitest'
import { collectLimits } from '../../src/collect/limits.ts'
import { nobodySuppressed } from '../../src/domain/suppression.ts'
import { judgeRecords } from '../../src/import/judge.ts'
import { readNdjson } from '../../src/import/ndjson.ts'
import { openCodecs } from '../../src/log/avro.ts'
import { aSource } from '../support/configuration.ts'
import { aTrack, ndjson } from './rig.ts'

const { call: codec } = await openCodecs({})

test('a line that holds a batch of thousands of calls is judged in slices', async () => {
  const calls = 10_000
  const bytes = ndjson({ batch: Array.from({ length: calls }, (_, n) => aTrack(n)) })
  let turns = 0
  const turn = () => {
    turns += 1
    immediate = setImmediate(turn)
  }
  let immediate = setImmediate(turn)
  const judged = await judgeRecords(readNdjson(bytes, 1), {
    source: aSource(),
    limits: collectLimits,
    plan: undefined,
    codec,
    suppressions: nobodySuppressed,
    metersFiltered: false,
    receivedAt: Date.parse('2026-11-01T12:00:00Z'),
    key: new Uint8Array(16),
  })
  clearImmediate(immediate)
  expect(judged.accepted).toBe(calls)
  // No machine judges so many within a few slices of a millisecond.
  expect(turns).toBeGreaterThan(5)
})

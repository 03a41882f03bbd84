// The properties of audiences in their long form: ten thousand histories of one user, and some of everybody
// for many audiences and computed traits at once.
import fc from 'fast-check'
import { test } from 'vitest'
import { cloneDatabase } from '../support/database.ts'
import { lineScene, playLine } from './audience-line.ts'
import { oneScene, playOne } from './audience-one.ts'
import { playRelabelled, relabelledScene } from './audience-relabelled.ts'

const { pool } = await cloneDatabase()

test('P1 P8: 10,000 histories of one user are as the naive evaluator says', () => {
  fc.assert(
    fc.property(oneScene, (scene) => playOne(scene)),
    { numRuns: 10_000 },
  )
}, 600_000)

const [traits, audiences] = [30, 120]
const numRuns = Number(process.env['AUDIENCE_HISTORIES'] ?? 14)

test(`P1 P2 P5 P6 P8: ${numRuns} histories of ${traits + audiences} audiences and traits are told as the naive evaluator says`, async () => {
  await fc.assert(
    fc.asyncProperty(lineScene(traits, audiences), (scene) => playLine(pool, scene)),
    { numRuns, endOnFailure: true },
  )
}, 1_200_000)

const inPartitions = Math.ceil(numRuns / 2)

test(`P4: ${inPartitions} histories in three partitions, read by two projectors, are told the same`, async () => {
  await fc.assert(
    fc.asyncProperty(lineScene(traits, audiences, 3), (scene) => playLine(pool, scene)),
    { numRuns: inPartitions, endOnFailure: true },
  )
}, 1_200_000)

test(`P7: in ${inPartitions} histories a merge at any time is as if the survivor had said it all`, async () => {
  await fc.assert(
    fc.asyncProperty(relabelledScene, async (scene) => void (await playRelabelled(pool, scene))),
    { numRuns: inPartitions, endOnFailure: true },
  )
}, 1_200_000)

// What one person is in and has, at any instant, is what the naive evaluator says: without a database, so
// that there can be very many histories.
import fc from 'fast-check'
import { test } from 'vitest'
import { oneScene, playOne } from './audience-one.ts'

const numRuns = 500

test(`P1 P8: ${numRuns} histories: a user's audiences and computed traits are as the naive evaluator says`, () => {
  fc.assert(
    fc.property(oneScene, (scene) => void playOne(scene)),
    { numRuns },
  )
}, 600_000)

import { expect, test } from 'vitest'
import { type Episode, type Saying, type Step, stepOf } from '../../src/domain/episode.ts'

const at = (minute: number) => new Date(Date.UTC(2024, 0, 1, 0, minute))

const saying = (over: Partial<Saying> = {}): Saying => ({
  ...{ owner: 'me', level: 100, since: at(0), toldAt: at(0), isAlive: true },
  ...over,
})

const episode = (sayings: readonly Saying[], recoveredAt: Date | null = null): Episode => ({
  ...{ owner: 'me', sayings, recoveredAt },
})

const cases: readonly (readonly [string, Episode, number, Step])[] = [
  ['the first to find it', episode([]), 50, 'failing'],
  ['what was told', episode([saying({ level: 50 })]), 50, 'known'],
  ['a higher level', episode([saying({ level: 50 })]), 70, 'failing'],
  ['what another process told', episode([saying({ owner: 'other' })]), 70, 'known'],
  ['what nobody told', episode([saying({ toldAt: null })]), 100, 'failing'],
  ['well, and nobody else finds that it fails', episode([saying()]), 0, 'recovered'],
  [
    'well here, failing elsewhere',
    episode([saying(), saying({ owner: 'other', toldAt: null })]),
    ...([0, 'left'] as const),
  ],
  [
    'well, and who found it failing is gone',
    episode([saying({ owner: 'other', isAlive: false })]),
    ...([0, 'recovered'] as const),
  ],
  ['well, and nobody was told', episode([saying({ toldAt: null })]), 0, 'over'],
  ['well, and nothing is known', episode([]), 0, 'over'],
  ['well, as was told since', episode([saying()], at(1)), 0, 'over'],
  [
    'well, as was told of an earlier one',
    episode([saying({ toldAt: at(2) })], at(1)),
    0,
    'recovered',
  ],
]

for (const [name, given, level, step] of cases)
  test(`${name}: ${step}`, () => {
    expect(stepOf(given, level)).toBe(step)
  })

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { packAhead, packUser, unpackUser } from '../../src/audience/pack.ts'
import type { PlannedLeaf } from '../../src/audience/plan.ts'
import {
  absorb,
  newUser,
  seeSource,
  setSummary,
  setTraits,
  summaryOf,
  traitsOf,
  type UserState,
} from '../../src/audience/state.ts'
import { readLeaves } from '../../src/audience/unpack.ts'
import { countKind } from '../../src/domain/condition/summary/count.ts'
import type { Kind, Summary } from '../../src/domain/condition/summary/kind.ts'
import { writeTraits } from '../../src/domain/traits.ts'

const everything = { leaf: (_id: number) => true, audience: (_id: number) => true }

const kind = countKind({ type: 'last', lastMs: 86_400_000, gridMs: 1_000 }, 3) as Kind<Summary>
const leafOf = (id: number) => ({ id, kind })

const summariesOf = (user: UserState): ReadonlyMap<number, Summary> =>
  new Map(
    [
      ...new Set([
        ...readLeaves(user.packed, user.summariesAt),
        ...(user.folded ?? []).map(({ id }) => id),
      ]),
    ]
      .sort((left, right) => left - right)
      .map((id) => [id, summaryOf(user, leafOf(id))]),
  )

const repacked = (user: UserState, known = everything): UserState => {
  const { key, workspaceId, ver, userId, due } = user
  return unpackUser({ key, workspaceId, ver, userId, due, st: packUser(user, known) })
}

const events = fc.array(fc.tuple(fc.integer({ min: 1, max: 40 }), fc.nat(2_000_000_000)))
const traits = fc.array(fc.tuple(fc.string({ unit: 'grapheme' }), fc.jsonValue(), fc.nat()))

const fold = (user: UserState, folded: readonly [number, number][]) => {
  for (const [leafId, bucket] of folded) {
    const te = bucket * 1_000
    const held = summaryOf(user, leafOf(leafId)) ?? kind.empty
    const seen = { te, r: te, id: 'm', properties: {} }
    setSummary(user, leafOf(leafId), kind.fold(held, seen, 0))
  }
  return user
}

const userOf = (
  folded: readonly [number, number][],
  written: readonly [string, unknown, number][],
) => {
  const user = fold(newUser(7, 1), folded)
  for (const [key, value, te] of written)
    setTraits(
      user,
      writeTraits(traitsOf(user), { [key]: value as null }, { te, r: te, id: `m${te}` }),
    )
  return user
}

test('whatever changes of a user who is packed ahead is packed all the same', () => {
  const changes: readonly [string, (user: UserState) => void][] = [
    ['nothing', () => undefined],
    ['a summary', (user) => void fold(user, [[9, 12]])],
    ['a trait', (user) => setTraits(user, writeTraits(traitsOf(user), { b: 2 }, stamp))],
    ['a source', (user) => void seeSource(user, 4)],
    ['identities', (user) => void Object.assign(user, { identities: 8 })],
    ['merges', (user) => void Object.assign(user, { merges: 1 })],
    ['memberships', (user) => void Object.assign(user, { members: [3, 5] })],
    ['computed traits', (user) => void Object.assign(user, { computed: new Map([[2, '5']]) })],
  ]
  const stamp = { te: 5, r: 5, id: 'm' }
  const made = () => userOf([[1, 5]], [['a', 'é', 3]])
  for (const [what, change] of changes) {
    const [ahead, other] = [made(), made()]
    packAhead(ahead, everything)
    change(ahead)
    change(other)
    expect(packUser(ahead, everything), what).toEqual(packUser(other, everything))
  }
  const user = made()
  packAhead(user, everything)
  const none = { leaf: () => false, audience: () => false }
  expect(packUser(user, none)).toEqual(packUser(made(), none))
})

test('a user comes back from the packed form as they went in', () => {
  fc.assert(
    fc.property(events, traits, (folded, written) => {
      const user = userOf(folded, written)
      user.members = [3, 700, 70_000]
      user.merges = 2
      user.identities = 300
      const before = { summaries: summariesOf(user), traits: [...traitsOf(user)] }
      const back = repacked(user)
      expect(summariesOf(back)).toEqual(before.summaries)
      for (const [leafId, summary] of before.summaries)
        expect(summaryOf(back, leafOf(leafId))).toEqual(summary)
      expect([...traitsOf(back)]).toEqual(JSON.parse(JSON.stringify(before.traits)))
      expect(back).toMatchObject({ members: user.members, merges: 2, identities: 300 })
      expect(packUser(repacked(user), everything)).toEqual(packUser(user, everything))
    }),
  )
})

test('a user packed in between is the user who never was', () => {
  fc.assert(
    fc.property(events, events, traits, (before, after, written) => {
      const user = fold(repacked(userOf(before, written)), after)
      const whole = userOf([...before, ...after], written)
      expect(summariesOf(user)).toEqual(summariesOf(whole))
      expect(packUser(user, everything)).toEqual(packUser(whole, everything))
    }),
  )
})

test('what is no longer known is left out', () => {
  const user = userOf(
    [
      [1, 5],
      [2, 5],
      [3, 5],
    ],
    [],
  )
  user.members = [1, 2, 3]
  const back = repacked(user, { leaf: (id) => id !== 2, audience: (id) => id === 3 })
  expect([[...summariesOf(back).keys()], back.members]).toEqual([[1, 3], [3]])
})

test('P11: a user of 40 leaves and a dozen traits takes less than 2 kB', () => {
  const bucket = Math.floor(Date.UTC(2026, 0, 1) / 3_600_000)
  const folded = Array.from({ length: 120 }, (_, at): [number, number] => [
    (at % 40) + 1,
    bucket - at,
  ])
  const written = Array.from({ length: 12 }, (_, at): [string, unknown, number] => [
    `trait_${at}`,
    'some value',
    1.7e12,
  ])
  expect(packUser(userOf(folded, written), everything).length).toBeLessThan(2_000)
})

const anyLeaf = new Map(
  Array.from({ length: 40 }, (_, at) => [at + 1, leafOf(at + 1) as PlannedLeaf]),
)

test('P7: absorbing gives what one user with all events would have', () => {
  fc.assert(
    fc.property(events, events, (left, right) => {
      const survivor = userOf(left, [])
      absorb(survivor, userOf(right, []), anyLeaf)
      expect(summariesOf(survivor)).toEqual(summariesOf(userOf([...left, ...right], [])))
    }),
  )
})

test('a packed user that ends early is refused', () => {
  const st = packUser(userOf([[1, 5]], []), everything)
  const row = { key: 1, workspaceId: 1, ver: 1, userId: null, due: 0 }
  expect(() => unpackUser({ ...row, st: st.subarray(0, 6) })).toThrow(RangeError)
  expect(() => unpackUser({ ...row, st: Buffer.from([9]) })).toThrow('unknown format')
})

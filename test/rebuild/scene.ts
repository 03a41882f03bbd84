// Generated lives over several sources and partitions: merges, aliases, ids that two claim, late calls, ties.
import { aMessage, audience, performed, type Rig, type Sent } from '../project/rig.ts'
import { seeded } from '../support/seeded.ts'

const day = 86_400_000

export const audiences = [
  audience(1, performed('gte', 2, '30d')),
  audience(2, performed('eq', 0), { includeAnonymous: false }),
  audience(3, { any: [{ trait: 'plan', op: 'eq', value: 'gold' }, performed('gte', 4)] }),
  audience(4, { event: { name: 'Ordered' }, sum: { prop: 'price' } }, { kind: 'trait' }),
  audience(5, { event: { name: 'Ordered' }, last: { prop: 'price' } }, { kind: 'trait' }),
  audience(6, {
    sequence: {
      steps: [
        { event: { name: 'Seen' }, as: 'a' },
        { event: { name: 'Ordered' }, within: '2d', then: 'did' },
      ],
    },
  }),
  audience(7, { users: { quantifier: 'any', where: performed('gte', 2) } }),
]

/** As a configuration file says them: who is in follows every call. */
export const fileAudiences = [
  { name: 'Twice', where: performed('gte', 2), destinations: [] },
  { name: 'Never', where: performed('eq', 0), destinations: [] },
]

/** Whose members are taken for one another again and again. */
const families = 24

/** So many calls by few people. */
export const lives = (rig: Rig, seed: number, count: number): readonly Sent[] => {
  const random = seeded(seed)
  const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T
  const sent: Sent[] = []
  for (let at = 0; at < count; at++) {
    const family = Math.floor(random() * families)
    const user = () => `u${family}-${Math.floor(random() * 3)}`
    const visitor = () => `a${family}-${Math.floor(random() * 3)}`
    const who = { sourceId: pick([1, 2, 3]), timestamp: rig.now() - pick([0, 0, 1, 3, 40]) * day }
    const kind = random()
    const of = random() < 0.5 ? { userId: user() } : { anonymousId: visitor() }
    if (kind < 0.5)
      sent.push({
        ...who,
        ...of,
        event: pick(['Ordered', 'Ordered', 'Seen']),
        properties: { price: Math.round(random() * 1_000) / 8 },
        topic: pick(['calls', 'calls', 'calls.import']),
      })
    else if (kind < 0.8)
      sent.push({
        ...who,
        type: 'identify',
        userId: user(),
        anonymousId: visitor(),
        traits: { plan: pick(['gold', 'free', null]), [pick(['x', 'y'])]: at },
      })
    else if (kind < 0.9)
      sent.push({ ...who, type: 'group', userId: user(), groupId: pick(['g1', 'g2']) })
    else if (kind < 0.97 || sent.length === 0)
      sent.push({ ...who, type: 'alias', userId: user(), previousId: pick([user(), visitor()]) })
    // The same call again: a duplicate where it is in the same partition.
    else sent.push({ ...pick(sent) })
  }
  return sent.map((call) => ({ ...call, messageId: call.messageId ?? aMessage({}, 0).messageId }))
}

import { expect, test } from 'vitest'
import { renderChange } from '../../src/domain/change.ts'

const change = {
  audience: {
    id: 3,
    kind: 'audience' as const,
    workspaceId: 2,
    key: 'vip',
    name: 'VIP',
    version: '1',
  },
  userId: 'é "quoted"',
  member: false,
  value: null,
  at: new Date('2024-03-01T00:00:00.000Z'),
}
const place = { shard: 5, seq: 8, destinationId: 4 }

test('the body is the identify message of the specification, byte for byte', () => {
  const [message] = renderChange(change, [place])
  expect(Buffer.from(message?.body ?? []).toString('utf8')).toBe(
    '{"version":1,"type":"identify","userId":"é \\"quoted\\"","traits":{"vip":false},"timestamp":"2024-03-01T00:00:00.000Z"}',
  )
})

test('a message id is the same when rendered again, and differs with anything that tells messages apart', () => {
  const idOf = (over: object, where: object = {}) =>
    renderChange({ ...change, ...over }, [{ ...place, ...where }])[0]?.messageId
  const ids = [
    idOf({}),
    idOf({ userId: 'other' }),
    idOf({ audience: { ...change.audience, version: '2' } }),
    idOf({ audience: { ...change.audience, id: 9 } }),
    idOf({}, { seq: 9 }),
    idOf({}, { shard: 6 }),
    idOf({}, { destinationId: 5 }),
  ]
  expect(new Set(ids).size).toBe(ids.length)
  expect(idOf({ at: new Date(0) })).toBe(ids[0])
})

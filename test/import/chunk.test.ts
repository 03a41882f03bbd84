import { describe, expect, test } from 'vitest'
import { isObject, type Json } from '../../src/domain/message.ts'
import { cloneDatabase } from '../support/database.ts'
import { aTrack, importRig, ndjson } from './rig.ts'

const whole = (bytes: Buffer) => ({ place: 0, line: 1, bytes, skipped: 0, isLast: true })

describe('a chunk', async () => {
  const { pool } = await cloneDatabase()

  test('is appended to calls.import as calls would be collected, at their own time', async () => {
    const rig = importRig(pool)
    const found = await rig.make()
    const bytes = ndjson(
      aTrack(1, { messageId: 'm1' }),
      aTrack(2, { sentAt: '2020-02-03T04:05:08Z' }),
    )
    expect(await rig.imports.take(found, whole(bytes))).toMatchObject({
      taken: { state: 'finished', accepted: 2, rejected: 0, place: bytes.length, line: 3 },
      rejected: [],
    })
    const messages = await rig.appended()
    expect(messages.map(({ userId }) => userId).toSorted()).toEqual(['u1', 'u2'])
    for (const message of messages)
      expect(message).toMatchObject({
        type: 'track',
        event: 'Order Completed',
        timestamp: Date.parse('2020-02-03T04:05:06.000Z'),
        receivedAt: Date.parse('2026-11-01T12:00:00Z'),
      })
    expect((await rig.bodies()).find(({ userId }) => userId === 'u1')).toMatchObject({
      messageId: 'm1',
      properties: { n: 1 },
    })
  })

  test('names every line that is rejected, and takes the others', async () => {
    const rig = importRig(pool)
    const bytes = ndjson(
      aTrack(1),
      '{"type":"track","userId":"u1"',
      '',
      { type: 'track', userId: 'u2' },
      { batch: [aTrack(3), { type: 'sing', userId: 'u3' }], context: { app: 'shop' } },
      '[1]',
      { type: 'delete', userId: 'u4' },
    )
    const broken = Buffer.concat([bytes, Buffer.from([0x7b, 0xff, 0x7d])])
    const taken = await rig.imports.take(await rig.make(), whole(broken))
    expect(taken).toMatchObject({ taken: { accepted: 2, rejected: 6, line: 9 } })
    expect('rejected' in (taken as object) && taken).toMatchObject({
      rejected: [
        { line: 2, index: 0, code: 'invalid_json' },
        { line: 4, index: 0, code: 'event_not_defined' },
        { line: 5, index: 1, code: 'unknown_type' },
        { line: 6, index: 0, code: 'not_an_object' },
        { line: 7, index: 0, code: 'unknown_type' },
        { line: 8, index: 0, code: 'invalid_json' },
      ],
    })
    const contexts = (await rig.bodies()).map(({ userId, context }) => [userId, appOf(context)])
    expect(contexts.toSorted()).toEqual([
      ['u1', undefined],
      ['u3', 'shop'],
    ])
  })

  test('counts, with those before it, what has no time that can be read', async () => {
    const rig = importRig(pool)
    const { id } = await rig.make()
    const { timestamp: _, ...without } = aTrack(1)
    const first = ndjson(without, aTrack(2), aTrack(3, { timestamp: '2099-01-01T00:00:00Z' }))
    await rig.imports.take(await rig.now(id), { ...whole(first), isLast: false })
    expect((await rig.now(id)).untimed).toBe(2)
    const bytes = ndjson(aTrack(4, { timestamp: 'yesterday' }), aTrack(5))
    const second = { ...whole(bytes), place: first.length, line: 4, isLast: false }
    expect(await rig.imports.take(await rig.now(id), second)).toMatchObject({
      taken: { accepted: 5, untimed: 3 },
    })
    // Sent again, because its answer was lost.
    await rig.imports.take(await rig.now(id), second)
    expect((await rig.now(id)).untimed).toBe(3)
  })

  test('that comes twice is answered twice and appended once', async () => {
    const rig = importRig(pool)
    const { id } = await rig.make()
    const bytes = ndjson(aTrack(1), 'nonsense')
    const chunk = { ...whole(bytes), isLast: false }
    const first = await rig.imports.take(await rig.now(id), chunk)
    expect(await rig.imports.take(await rig.now(id), chunk)).toEqual(first)
    expect(await rig.appended()).toHaveLength(1)
    expect(await rig.now(id)).toMatchObject({ accepted: 1, rejected: 1 })
  })

  test.each(['refuse', 'unheard', { only: 3 }] as const)(
    'whose append went wrong (%j) is appended once, days later and elsewhere too',
    async (how) => {
      const rig = importRig(pool)
      const { id } = await rig.make()
      const calls = Array.from({ length: 20 }, (_, n) => aTrack(n))
      const chunk = whole(ndjson(...calls))
      rig.behave(how)
      await expect(rig.imports.take(await rig.now(id), chunk)).rejects.toThrow('broken by the test')
      expect(await rig.now(id)).toMatchObject({ place: 0, accepted: 0, state: 'running' })
      rig.behave('take')
      rig.setTime(new Date('2026-11-04T12:00:00Z'))
      expect(await rig.another().take(await rig.now(id), chunk)).toMatchObject({
        taken: { state: 'finished', accepted: 20 },
      })
      const messages = await rig.appended()
      expect(messages.map(({ userId }) => userId).toSorted()).toEqual(
        calls.map(({ userId }) => userId).toSorted(),
      )
      // Those of the first try keep their receipt, and a repeat would be the same to the byte.
      expect(new Set(messages.map(({ receivedAt }) => receivedAt))).toEqual(
        new Set([Date.parse('2026-11-01T12:00:00Z')]),
      )
    },
  )

  test('is taken in its turn while the one before it is being appended', async () => {
    const rig = importRig(pool)
    const found = await rig.make()
    const first = ndjson(aTrack(1))
    const second = ndjson(aTrack(2))
    const [, taken] = await Promise.all([
      rig.imports.take(found, { ...whole(first), isLast: false }),
      rig.imports.take(found, { ...whole(second), place: first.length, line: 2 }),
    ])
    expect(taken).toMatchObject({ taken: { state: 'finished', accepted: 2, line: 3 } })
  })

  test('that is not the next one is refused, and so is any of an import that is over', async () => {
    const rig = importRig(pool)
    const found = await rig.make()
    const bytes = ndjson(aTrack(1))
    expect(await rig.imports.take(found, { ...whole(bytes), place: 7, line: 2 })).toMatchObject({
      refused: 'import_moved',
      now: { place: 0 },
    })
    await rig.imports.take(found, whole(bytes))
    expect(
      await rig.imports.take(found, { ...whole(bytes), place: bytes.length, line: 2 }),
    ).toMatchObject({ refused: 'import_over' })
    expect(await rig.appended()).toHaveLength(1)
  })

  test('holds no call from before a user asked to be forgotten', async () => {
    const asked = new Date('2021-01-01T00:00:00Z')
    const rig = importRig(pool, {
      suppressions: {
        isSuppressed: ({ userId, sentAt }) => userId === 'u1' && sentAt < asked,
      },
    })
    const taken = await rig.imports.take(
      await rig.make(),
      whole(ndjson(aTrack(1), aTrack(2), aTrack(1, { timestamp: '2022-01-01T00:00:00Z' }))),
    )
    expect(taken).toMatchObject({ taken: { accepted: 2, suppressed: 1, rejected: 0 } })
    expect((await rig.appended()).map(({ userId }) => userId).toSorted()).toEqual(['u1', 'u2'])
  })

  test('does not bring a forgotten user back as the previous id of another', async () => {
    const rig = importRig(pool, {
      suppressions: { isSuppressed: ({ previousId }) => previousId === 'gone' },
    })
    const alias = { type: 'alias', previousId: 'gone', timestamp: '2020-02-03T04:05:06.000Z' }
    const taken = await rig.imports.take(
      await rig.make(),
      whole(ndjson({ ...alias, userId: 'u1' }, { ...alias, userId: 'u1', previousId: 'u0' })),
    )
    expect(taken).toMatchObject({ taken: { accepted: 1, suppressed: 1 } })
  })

  test('of a dry run is judged and not appended', async () => {
    const rig = importRig(pool)
    const taken = await rig.imports.take(
      await rig.make({ dryRun: true }),
      whole(ndjson(aTrack(1), 'nonsense')),
    )
    expect(taken).toMatchObject({ taken: { state: 'finished', accepted: 1, rejected: 1 } })
    expect(await rig.appended()).toEqual([])
  })
})

const appOf = (context: Json | undefined) => (isObject(context) ? context['app'] : undefined)

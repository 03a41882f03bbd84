import { expect, test } from 'vitest'
import type { Debugger, Told } from '../../src/debugger/debugger.ts'
import type { Counted } from '../../src/domain/pipeline.ts'
import { basic, startCollecting } from '../support/collecting.ts'

test('a suppressed user’s calls are answered as accepted, and neither appended nor shown', async () => {
  const told: Told[] = []
  const counted: string[] = []
  const watching: Debugger = {
    isWatching: () => true,
    isWatched: () => true,
    tell: (_, all) => void told.push(...all),
  }
  const { post, log } = await startCollecting({
    suppressions: { isSuppressed: ({ userId }) => userId === 'u1' },
    debugger: watching,
    pipeline: {
      count: ({ step, reason }: Counted, amount) =>
        void counted.push(`${step} ${reason} ${amount}`),
    },
  })
  const key = { authorization: basic('sk_web') }
  const call = (userId: string, type = 'track') => ({ type, userId, event: 'e', messageId: userId })
  const alone = await post('/v1/track', call('u1'), key)
  expect([alone.status, alone.json]).toEqual([200, { success: true }])
  const batch = [call('u1'), call('u2'), call('u1', 'delete')]
  const reply = await post('/v1/batch', { batch }, key)
  expect([reply.status, reply.json]).toEqual([200, { success: true }])
  expect(log.appended.map(({ message: { type, userId } }) => [type, userId])).toEqual([
    ['track', 'u2'],
    ['delete', 'u1'],
  ])
  expect(told.map(({ type }) => type)).toEqual(['track', 'delete'])
  expect(counted).toContain('filtered suppressed 1')
})

import { expect, test } from 'vitest'
import { decideRound } from '../../src/domain/round.ts'
import { sign } from '../../src/domain/signature.ts'

const delivered = { type: 'delivered' } as const
const busy = { type: 'temporary', reason: 'status_503', status: 503, retryAfterMs: null } as const
const gone = { type: 'final', reason: 'status_404', status: 404 } as const

test('any one success settles the message', () => {
  expect(decideRound([busy, gone, delivered])).toEqual({ type: 'delivered' })
})

test('one temporary failure keeps the message alive and leaves out what is final', () => {
  expect(decideRound([gone, busy, gone])).toMatchObject({
    type: 'temporary',
    reason: 'status_503',
    final: [0, 2],
  })
})

test('a message that every URL refuses is dead, for the reason of the first', () => {
  const redirect = { type: 'final', reason: 'redirect', status: 302 } as const
  expect(decideRound([gone, redirect])).toEqual(gone)
})

test('a pause is asked for only when every URL still in play asks', () => {
  const asks = (retryAfterMs: number) => ({ ...busy, retryAfterMs })
  expect(decideRound([asks(9), asks(5)])).toMatchObject({ retryAfterMs: 5 })
  expect(decideRound([asks(9), busy])).toMatchObject({ retryAfterMs: null })
})

test('a signature is the lowercase hex HMAC-SHA1 of the bytes', () => {
  // RFC 2202, test case 2.
  expect(sign('Jefe', Buffer.from('what do ya want for nothing?'))).toBe(
    'effcdf6ae5eb2fa2d27416d5f184df9c259a7c79',
  )
})

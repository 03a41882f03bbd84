import { expect, test } from 'vitest'
import { decideRound, planRound, type Usable } from '../../src/domain/round.ts'
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

test('a URL that was not asked keeps a message alive that the others refused, with no pause', () => {
  expect(decideRound([gone, gone], true)).toEqual({
    type: 'temporary',
    reason: 'status_404',
    status: 404,
    retryAfterMs: null,
    final: [0, 1],
  })
  expect(decideRound([{ ...busy, retryAfterMs: 9 }], true)).toMatchObject({ retryAfterMs: null })
  expect(decideRound([gone, delivered], true)).toEqual({ type: 'delivered' })
})

test('a round in which only this machine failed was no try', () => {
  const ours = { ...busy, reason: 'local_resources', status: null }
  expect(decideRound([ours, ours])).toEqual({ type: 'ours', reason: 'local_resources' })
  expect(decideRound([ours, gone])).toMatchObject({ type: 'temporary', final: [1] })
  expect(decideRound([ours, busy])).toMatchObject({ type: 'temporary' })
})

const urls = (...standings: readonly Usable['standing'][]): readonly Usable[] =>
  standings.map((standing) => ({ standing, reason: null, mayTryLast: true }))

test.each([
  [['free', 'free'], { type: 'post', at: [0, 1], later: [], isUntried: false }],
  [['probe', 'open', 'free'], { type: 'post', at: [0, 2], later: [], isUntried: true }],
  [['full', 'free'], { type: 'post', at: [1], later: [0], isUntried: false }],
  [['refused', 'held', 'disabled', 'free'], { type: 'post', at: [3], later: [], isUntried: false }],
  [['open', 'full'], { type: 'wait' }],
  [['paced', 'refused'], { type: 'wait' }],
  [['open', 'held'], { type: 'hold' }],
  [['open', 'refused'], { type: 'hold' }],
  [['held', 'disabled'], { type: 'die', reason: 'tls_self_signed' }],
  [['disabled', 'refused'], { type: 'die', reason: 'url_disabled' }],
  [['refused'], { type: 'die', reason: 'no_url' }],
  [[], { type: 'die', reason: 'no_url' }],
] as const)('with URLs that are %j the plan is %j', (standings, plan) => {
  expect(planRound(urls(...standings), false)).toEqual(plan)
})

test('a last try goes through an open breaker, or waits for room there', () => {
  expect(planRound(urls('open', 'held'), true)).toEqual({
    type: 'post',
    at: [0],
    later: [],
    isUntried: false,
  })
  const full = urls('open').map((url) => ({ ...url, mayTryLast: false }))
  expect(planRound(full, true)).toEqual({ type: 'wait' })
})

test('a held message dies for the reason its URL is held', () => {
  const held = urls('held').map((url) => ({ ...url, reason: 'tls_private_root' }))
  expect(planRound(held, false)).toEqual({ type: 'die', reason: 'tls_private_root' })
})

test('a signature is the lowercase hex HMAC-SHA1 of the bytes', () => {
  // RFC 2202, test case 2.
  expect(sign('Jefe', Buffer.from('what do ya want for nothing?'))).toBe(
    'effcdf6ae5eb2fa2d27416d5f184df9c259a7c79',
  )
})

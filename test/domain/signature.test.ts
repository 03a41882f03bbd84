import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { defaultDestinationSettings, type Signatures } from '../../src/domain/configuration.ts'
import {
  isStandardSecret,
  sign,
  signedHeaders,
  standardSecretOf,
  webhookId,
} from '../../src/domain/signature.ts'

const body = Buffer.from('{"type":"track","ü":"😀"}')
const now = Date.UTC(2026, 2, 1, 12, 0, 0, 750)
const none = defaultDestinationSettings.signatures

const headersOf = (
  over: {
    readonly sharedSecret?: string | null
    readonly nextSharedSecret?: { readonly secret: string; readonly activateAt: number } | null
    readonly signatures?: Partial<Signatures>
  } = {},
  messageId = 'm1',
) =>
  signedHeaders(
    {
      sharedSecret: over.sharedSecret === undefined ? 'secret' : over.sharedSecret,
      nextSharedSecret: over.nextSharedSecret ?? null,
      signatures: { ...none, ...over.signatures },
    },
    { messageId, body },
    now,
  )

const hmac = (algorithm: string, secret: string) =>
  createHmac(algorithm, secret).update(body).digest('hex')

test('the signature is the one that others compute', () => {
  // RFC 2202, test case 2.
  const text = Buffer.from('what do ya want for nothing?')
  expect(sign('Jefe', text)).toBe('effcdf6ae5eb2fa2d27416d5f184df9c259a7c79')
})

test('by default there is X-Signature alone, and without a secret nothing', () => {
  expect(headersOf()).toEqual({ 'X-Signature': hmac('sha1', 'secret') })
  const all = { standardWebhooks: true, sha256: true, next: true }
  expect(headersOf({ sharedSecret: null })).toEqual({})
  expect(headersOf({ sharedSecret: null, signatures: all })).toEqual({})
})

test('X-Signature-256 is the same over SHA-256', () => {
  expect(headersOf({ signatures: { sha256: true } })).toEqual({
    'X-Signature': hmac('sha1', 'secret'),
    'X-Signature-256': hmac('sha256', 'secret'),
  })
})

describe('while a secret is being replaced', () => {
  const nextAt = (activateAt: number) => ({ nextSharedSecret: { secret: 'next', activateAt } })
  const signatures = { next: true }

  test.each([
    ['a millisecond before the switch the current one signs', 1, 'secret'],
    ['at the switch the next one signs', 0, 'next'],
    ['after it the next one signs', -86_400_000, 'next'],
  ])('%s', (_name, inMs, secret) => {
    expect(headersOf(nextAt(now + inMs))).toEqual({ 'X-Signature': hmac('sha1', secret) })
  })

  test('X-Signature-Next lets receivers try the next one, only until the switch and only when asked for', () => {
    expect(headersOf({ ...nextAt(now + 1), signatures })).toEqual({
      'X-Signature': hmac('sha1', 'secret'),
      'X-Signature-Next': hmac('sha1', 'next'),
    })
    expect(headersOf({ ...nextAt(now), signatures })).toEqual({
      'X-Signature': hmac('sha1', 'next'),
    })
    expect(headersOf({ signatures })).toEqual({ 'X-Signature': hmac('sha1', 'secret') })
  })
})

describe('Standard Webhooks', () => {
  const signatures = { standardWebhooks: true }

  test('sign id, seconds and body as the published vector does', () => {
    const secret = 'whsec_plJ3nmyCDGBKInavdOK15jsl'
    const headers = signedHeaders(
      { sharedSecret: secret, nextSharedSecret: null, signatures: { ...none, ...signatures } },
      {
        messageId: 'msg_loFOjxBNrRLzqYUf',
        body: Buffer.from('{"event_type":"ping","data":{"success":true}}'),
      },
      1_731_705_121_999,
    )
    expect(headers).toMatchObject({
      'webhook-id': 'msg_loFOjxBNrRLzqYUf',
      'webhook-timestamp': '1731705121',
      'webhook-signature': 'v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=',
    })
  })

  test('carry both signatures until the switch and only the new one after it', () => {
    const next = (activateAt: number) =>
      String(
        headersOf({ nextSharedSecret: { secret: 'next', activateAt }, signatures })[
          'webhook-signature'
        ],
      ).split(' ')
    const [current, coming] = next(now + 1)
    expect(next(now)).toEqual([coming])
    expect([headersOf({ signatures })['webhook-signature']]).toEqual([current])
  })

  test('take an id of the client that a header can hold and that has no full stop', () => {
    expect(webhookId('0b0b7b6e-1c1d-4a52-9f3f-7d1f0a6a2b11')).toBe(
      '0b0b7b6e-1c1d-4a52-9f3f-7d1f0a6a2b11',
    )
    expect(webhookId('a.b\r\nX: 1')).toBe('a%2Eb%0D%0AX%3A%201')
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (one, other) => {
        expect(webhookId(one)).toMatch(/^[!#-'*+/-9A-Z^_`a-z|~()%-]*$/)
        expect(webhookId(one)).not.toContain('.')
        if (one.isWellFormed() && other.isWellFormed())
          expect(webhookId(one) === webhookId(other)).toBe(one === other)
      }),
    )
    expect(webhookId('\ud800')).toBe('%EF%BF%BD')
  })

  test.each([
    ['s3cret', true],
    [standardSecretOf(Buffer.alloc(24)), true],
    [standardSecretOf(Buffer.alloc(64)), true],
    [standardSecretOf(Buffer.alloc(23)), false],
    [standardSecretOf(Buffer.alloc(65)), false],
    ['whsec_', false],
    ['whsec_not base64!', false],
  ])('read the secret %j: %s', (secret, expected) => {
    expect(isStandardSecret(secret)).toBe(expected)
  })
})

import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hmacSha1 } from '../../src/domain/hmac-sha1.ts'

const expected = (secret: string, bytes: Uint8Array) =>
  createHmac('sha1', secret).update(bytes).digest('hex')

test('any secret and any bytes give what the library gives, in any order', () => {
  const secret = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ minLength: 60, maxLength: 90 }),
  )
  const messages = fc.array(fc.tuple(secret, fc.uint8Array({ maxLength: 300 })), { maxLength: 8 })
  fc.assert(
    fc.property(messages, (all) => {
      for (const [key, bytes] of all) expect(hmacSha1(key, bytes)).toBe(expected(key, bytes))
    }),
  )
})

test.each([0, 1, 32_767, 32_768, 32_769, 600_000])('a message of %i bytes', (length) => {
  const bytes = Buffer.alloc(length, 'millrace')
  expect(hmacSha1('secret', bytes)).toBe(expected('secret', bytes))
})

test('more secrets than are remembered', () => {
  const bytes = Buffer.from('body')
  for (let at = 0; at < 2_500; at += 1)
    expect(hmacSha1(`secret ${at}`, bytes)).toBe(expected(`secret ${at}`, bytes))
  expect(hmacSha1('secret 0', bytes)).toBe(expected('secret 0', bytes))
})

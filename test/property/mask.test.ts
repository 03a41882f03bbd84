import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { maskCall, maskLimits } from '../../src/debugger/mask.ts'
import { shown } from '../../src/debugger/scrub.ts'
import type { Json } from '../../src/domain/message.ts'
import { seed } from '../support/seed.ts'

/** No word of a call's own fields can be made of these. */
const letters = 'bcdfghjkqvwxz'
const digits = '0123456789'
const text = (of: string, minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...of), minLength, maxLength })

/** What must not be seen, and the parts of it that would give it away. */
type Secret = { readonly text: string; readonly parts: readonly string[] }

const whole = (value: string): Secret => ({ text: value, parts: [value] })

const email = fc
  .tuple(
    text(letters, 4, 12),
    fc.constantFrom('@', '%40', ' @ ', '＠', ' (at) '),
    text(letters, 4, 10),
  )
  .map(([user, at, host]): Secret => ({ text: `${user}${at}${host}.com`, parts: [user, host] }))
const phone = fc
  .tuple(
    text('123456789', 2, 3),
    text(digits, 3, 4),
    text(digits, 3, 4),
    fc.constantFrom(' ', '-', '.', '', ' / '),
  )
  .map(
    ([area, first, last, gap]): Secret => ({
      text: `+${area}${gap}${first}${gap}${last}`,
      parts: [`${area}${first}${last}`, `${first}${gap}${last}`],
    }),
  )
const card = text(digits, 16, 16).map(
  (number): Secret => ({
    text: number.replace(/(.{4})(?=.)/g, '$1 '),
    parts: (number.match(/.{4}/g) as string[]).map((part, at) =>
      at === 0 ? `${part} ` : ` ${part}`,
    ),
  }),
)
const token = fc
  .tuple(fc.constantFrom('sk_live_', 'ghp_', 'xoxb-', ''), text(letters + digits, 24, 40))
  .filter(([, random]) => /\d/.test(random) && /[a-z]/.test(random))
  .map(
    ([prefix, random]): Secret => ({
      text: prefix + random,
      parts: [random.slice(0, 8), random.slice(-8)],
    }),
  )
const uuid = fc.uuid().map((id): Secret => ({ text: id, parts: [id.slice(0, 8), id.slice(-12)] }))
const ip = fc
  .oneof(
    fc.ipV4(),
    fc.ipV6().filter((address) => address.length > 6),
  )
  .map(whole)
const street = fc
  .tuple(
    fc.integer({ min: 1, max: 9_999 }),
    text(letters, 4, 10),
    fc.constantFrom('Street', 'Road', 'Ave'),
  )
  .map(([number, name, kind]): Secret => ({ text: `${number} ${name} ${kind}`, parts: [name] }))
const personal = fc.oneof(email, phone, card, token, uuid, ip, street)

const plain = fc.constantFrom('Order', 'Seen', 'Plan', 'to', '')
const around = fc.tuple(plain, personal, plain).map(
  ([before, secret, after]): Secret => ({
    ...secret,
    text: `${before} ${secret.text} ${after}`.trim(),
  }),
)

/** A call with the secret at a place of any kind: leaf, key, structural field. */
const places: readonly ((secret: string) => Json)[] = [
  (secret) => ({ type: 'track', event: secret }),
  (secret) => ({
    type: 'page',
    name: secret,
    category: secret,
    properties: { path: `/a/${secret}/b` },
  }),
  (secret) => ({
    type: secret,
    channel: secret,
    version: secret,
    timestamp: secret,
    sentAt: secret,
  }),
  (secret) => ({ userId: `id:${secret}`, anonymousId: `id:${secret}`, groupId: `id:${secret}` }),
  (secret) => ({ messageId: `id:${secret}` }),
  (secret) => ({ traits: { note: secret, list: [secret, { deeper: secret }], [secret]: true } }),
  (secret) => ({ properties: { [secret]: { [secret]: secret }, userId: `id:${secret}` } }),
  (secret) => ({ integrations: { [secret]: true, Other: { key: secret } } }),
  (secret) => ({ [secret]: secret }),
  (secret) => ({
    context: {
      library: { name: secret, version: secret, other: secret },
      app: { name: secret, version: secret, build: secret, namespace: secret },
      os: { name: secret, version: secret },
      device: { type: secret, name: secret },
      page: { path: `/x/${secret}?q=${secret}`, title: secret, url: `https://a.test/${secret}` },
      [secret]: secret,
    },
  }),
  (secret) => [secret],
  (secret) => secret,
]

describe(`whatever a call holds (SEED=${seed})`, () => {
  test('no address, number or secret of anybody is shown, wherever it stands', () => {
    fc.assert(
      fc.property(around, fc.constantFrom(...places), (secret, place) => {
        const output = JSON.stringify(maskCall(place(secret.text)).call)
        for (const part of secret.parts)
          if (part.length > 3) expect(output.toLowerCase()).not.toContain(part.toLowerCase())
      }),
      { seed, numRuns: 6_000 },
    )
  })

  test('no string of traits, properties or an unknown field is shown, whatever it is', () => {
    const leaf = fc.tuple(text(letters, 4, 20), text(letters, 2, 9)).map(([a, b]) => `${a}zq ${b}`)
    fc.assert(
      fc.property(
        leaf,
        fc.constantFrom('traits', 'properties', 'context', 'custom'),
        (value, field) => {
          const call = { [field]: { note: value, list: [value], deep: { er: { still: value } } } }
          const output = JSON.stringify(maskCall(call as Json).call)
          for (const word of value.split(' '))
            if (word.length > 3) expect(output).not.toContain(word)
        },
      ),
      { seed, numRuns: 1_000 },
    )
  })

  test('what is shown is JSON within its bound, and the call is left as it was', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 12 }), (value) => {
        const before = JSON.stringify(value)
        const { call } = maskCall(value as Json)
        const output = JSON.stringify(call)
        expect(Buffer.byteLength(output)).toBeLessThanOrEqual(maskLimits.bytesMax)
        expect(JSON.stringify(JSON.parse(output))).toBe(output)
        expect(JSON.stringify(value)).toBe(before)
      }),
      { seed, numRuns: 1_000 },
    )
  })

  test('scrubbing costs little, however hostile the text', () => {
    const hostile = fc.string({
      unit: fc.constantFrom('a', '1', ' ', '@', ':', '(', '-', 'st', '%'),
      maxLength: 400,
    })
    fc.assert(
      fc.property(hostile, (value) => {
        const began = process.cpuUsage()
        shown(value)
        const { user, system } = process.cpuUsage(began)
        expect(user + system).toBeLessThan(200_000)
      }),
      { seed, numRuns: 2_000 },
    )
  })
})

import { describe, expect, test } from 'vitest'
import {
  defaultSourceSettings,
  type SourceClass,
  type SourceSettings,
} from '../../src/domain/configuration.ts'
import type { JsonObject } from '../../src/domain/message.ts'
import { normalise, type Receipt } from '../../src/domain/normalise.ts'
import { aSource } from '../support/configuration.ts'
import { aReceipt } from '../support/receipt.ts'

type Wanted = Partial<SourceSettings> & { readonly class: SourceClass }

const sourceOf = ({ class: kind, ...settings }: Wanted) =>
  aSource({ class: kind, settings: { ...defaultSourceSettings, ...settings } })

/** What is stored: read from the body, because only what stands there is kept. */
const storedContext = (wanted: Wanted, context: JsonObject, over: Partial<Receipt> = {}) => {
  const raw = { type: 'track', userId: 'u1', event: 'e', context }
  const judged = normalise(raw, aReceipt({ source: sourceOf(wanted), ...over }))
  if ('rejected' in judged) throw new Error(judged.rejected)
  const { context: stored } = JSON.parse(Buffer.from(judged.body).toString())
  return stored as Record<string, unknown>
}

const seen = '203.0.113.9'
const claimed = '198.51.100.1'

describe('context.ip', () => {
  test.each<[string, Wanted, JsonObject, unknown]>([
    ['of a page is what we see', { class: 'web' }, {}, seen],
    ['of a phone is what we see', { class: 'mobile' }, {}, seen],
    ['of a page is not what it claims', { class: 'web' }, { ip: claimed }, seen],
    [
      'of a page is what it claims where that is trusted',
      { class: 'web', trustClientIp: true },
      { ip: claimed },
      claimed,
    ],
    [
      'of a trusted page that claims nothing is what we see',
      { class: 'web', trustClientIp: true },
      {},
      seen,
    ],
    [
      'of a trusted page that claims "" is what we see',
      { class: 'web', trustClientIp: true },
      { ip: '' },
      seen,
    ],
    ['of a server is what it says', { class: 'server' }, { ip: claimed }, claimed],
    ['of a server is not what we see', { class: 'server' }, {}, undefined],
    [
      'of a server that lets its client through is what we see',
      { class: 'server' },
      { direct: true },
      seen,
    ],
    [
      'of such a server is what it says where it says',
      { class: 'server' },
      { direct: true, ip: claimed },
      claimed,
    ],
    [
      'of a server whose direct is no true is untouched',
      { class: 'server' },
      { direct: 'yes' },
      undefined,
    ],
    ['is cut', { class: 'web', ipPolicy: 'truncate' }, {}, '203.0.113.0'],
    [
      'is cut where it was claimed',
      { class: 'web', ipPolicy: 'truncate', trustClientIp: true },
      { ip: '2001:db8:1:2::3' },
      '2001:db8:1::',
    ],
    [
      'is cut where a server says it',
      { class: 'server', ipPolicy: 'truncate' },
      { ip: claimed },
      '198.51.100.0',
    ],
    [
      'is dropped where it cannot be cut',
      { class: 'server', ipPolicy: 'truncate' },
      { ip: 'x' },
      undefined,
    ],
    ['is dropped', { class: 'web', ipPolicy: 'drop' }, {}, undefined],
    [
      'is dropped where it was claimed',
      { class: 'server', ipPolicy: 'drop' },
      { ip: claimed },
      undefined,
    ],
  ])('%s', (_name, ...[wanted, context, ip]) => {
    const stored = storedContext(wanted, context)
    expect(stored['ip']).toEqual(ip)
    expect('ip' in stored).toBe(ip !== undefined)
  })

  test('of a batch obeys the policy too', () => {
    const over = { context: { ip: claimed } }
    expect(storedContext({ class: 'server', ipPolicy: 'drop' }, {}, over)).not.toHaveProperty('ip')
  })

  test('of a page is nothing rather than what it claims where we do not see it', () => {
    const stored = storedContext({ class: 'web' }, { ip: claimed }, { ip: null })
    expect(stored).not.toHaveProperty('ip')
  })
})

describe('context.userAgent', () => {
  test.each<[string, SourceClass, JsonObject, unknown]>([
    ['of a page is the header', 'web', {}, 'test/1'],
    ['of a page is its own where it has one', 'web', { userAgent: 'own' }, 'own'],
    ['of a server is not the header', 'server', {}, undefined],
    [
      'of a server that lets its client through is the header',
      'server',
      { direct: true },
      'test/1',
    ],
  ])('%s', (_name, ...[type, context, userAgent]) => {
    expect(storedContext({ class: type }, context)['userAgent']).toEqual(userAgent)
  })
})

test('a source may have its clients’ clocks left alone', () => {
  const raw = {
    type: 'track',
    userId: 'u1',
    event: 'e',
    timestamp: '2026-03-01T10:00:00Z',
    sentAt: '2026-03-01T11:00:00Z',
  }
  const timestampOf = (ignoreSentAt: boolean) => {
    const receipt = aReceipt({ source: sourceOf({ class: 'server', ignoreSentAt }) })
    const judged = normalise(raw, receipt)
    return ['timestamp' in judged && new Date(judged.timestamp).toISOString(), receipt.flags]
  }
  expect(timestampOf(true)).toEqual(['2026-03-01T10:00:00.000Z', ['skew_ignored']])
  expect(timestampOf(false)).toEqual(['2026-03-01T11:00:00.000Z', ['skew_corrected']])
})

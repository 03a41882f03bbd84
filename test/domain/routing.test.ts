import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/domain/message.ts'
import { isHistorical, isIntegrated, unrouted } from '../../src/domain/routing.ts'
import { aDestination } from '../support/configuration.ts'

const crm = { name: 'CRM', type: 'webhook' } as const

describe('an integrations map', () => {
  test.each<[string, JsonObject | undefined, boolean]>([
    ['is absent: everything is on', undefined, true],
    ['is empty: everything is on', {}, true],
    ['names the destination false', { CRM: false }, false],
    ['names the destination true against All false', { All: false, CRM: true }, true],
    ['switches everything off by All', { All: false }, false],
    ['names the type', { Webhooks: false }, false],
    ['names the type true against All false', { All: false, Webhooks: true }, true],
    ['names the destination against its type', { Webhooks: false, CRM: true }, true],
    ['names it in another case, which is another name', { crm: false, webhooks: false }, true],
    ['is case sensitive about All too', { all: false }, true],
    ['holds an object, which counts as true', { All: false, CRM: { list: 'a' } }, true],
    ['holds something that says nothing', { CRM: null, Webhooks: 'no', All: false }, false],
    ['is asked for an inherited name', { All: false, constructor: true }, false],
  ])('%s', (_name, integrations, expected) => {
    expect(isIntegrated(integrations, crm)).toBe(expected)
  })

  test('does not answer for a destination named like an inherited property', () => {
    expect(isIntegrated({ All: false }, { name: 'constructor', type: 'webhook' })).toBe(false)
  })
})

const day = 86_400_000

test('a call is historical when more than the threshold lies between timestamp and receipt', () => {
  expect(isHistorical({ receivedAt: day, timestamp: 0 }, day)).toBe(false)
  expect(isHistorical({ receivedAt: day + 1, timestamp: 0 }, day)).toBe(true)
})

test('a destination whose historical switch is off does not take historical calls', () => {
  const old = { receivedAt: 10 * day, timestamp: 0 }
  const fresh = { receivedAt: 10 * day, timestamp: 10 * day - 1 }
  const off = aDestination({ historical: false })
  expect(unrouted(off, old, {})).toBe('historical')
  expect(unrouted(off, fresh, {})).toBe(null)
  expect(unrouted(aDestination(), old, {})).toBe(null)
  expect(unrouted({ ...off, historicalAfterMs: 20 * day }, old, {})).toBe(null)
})

test('a destination that is switched off takes nothing, whatever else is true of it', () => {
  const off = aDestination({ enabled: false, historical: false })
  const old = { receivedAt: 10 * day, timestamp: 0 }
  expect(unrouted(off, old, {})).toBe('destination_disabled')
  expect(unrouted(off, old, { integrations: { All: false } })).toBe('destination_disabled')
})

test('a destination that the integrations map switches off is told so, though it takes no history either', () => {
  const off = aDestination({ historical: false })
  const old = { receivedAt: 10 * day, timestamp: 0 }
  expect(unrouted(off, old, { integrations: { All: false } })).toBe('integrations')
})

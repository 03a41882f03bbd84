import { expect, test } from 'vitest'
import { propertyKey } from '../../src/domain/property-key.ts'

test.each([
  ['Big Spenders', 'big_spenders'],
  ['VIP!', 'vip'],
  ['HTTPUsers', 'http_users'],
  ['bigSpenders 2', 'big_spenders_2'],
  ['Été', 'ete'],
  ['  --a__B--  ', 'a_b'],
  ['日本 Kunden', '日本_kunden'],
])('the key of %s is %s', (name, key) => {
  expect(propertyKey(name)).toBe(key)
})

test.each(['', '!!!', ' _ '])('nothing is left of %j, so it has no key', (name) => {
  expect(propertyKey(name)).toBeNull()
})

test('a key is its own key', () => {
  for (const name of ['VIP!', 'HTTPUsers', 'bigSpenders 2', 'Été'])
    expect(propertyKey(propertyKey(name) ?? '')).toBe(propertyKey(name))
})

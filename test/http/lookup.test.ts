// Resolving names: asked once at a time, remembered for a while, and a dead name server hurts new names alone.
import { expect, test } from 'vitest'
import { type Address, lookupLimits, openLookup } from '../../src/http/lookup.ts'

const to = (address: string): readonly Address[] => [{ address, family: 4 }]
const failing = (code: string) => Promise.reject(Object.assign(new Error(code), { code }))

/** A name server that answers as told, and counts. */
const scripted = (...answers: (() => Promise<readonly Address[]>)[]) => {
  const state = { asked: 0 }
  const resolve = () => {
    const answer = answers[Math.min(state.asked, answers.length - 1)]
    state.asked += 1
    return answer ? answer() : failing('ENOTFOUND')
  }
  return { state, resolve }
}

const limits = { ...lookupLimits, freshMs: 0, patienceMs: 50 }
const hang = () => new Promise<never>(() => undefined)

test('a name asked for many times at once is resolved once, and for a while not again', async () => {
  const { state, resolve } = scripted(async () => to('192.0.2.1'))
  const lookup = openLookup(resolve)
  const all = await Promise.all(Array.from({ length: 100 }, () => lookup('a.test')))
  expect(new Set(all.map(([first]) => first?.address))).toEqual(new Set(['192.0.2.1']))
  await lookup('a.test')
  expect(state.asked).toBe(1)
})

test('what has grown old is asked for again, and the new answer is used', async () => {
  const { resolve } = scripted(
    async () => to('192.0.2.1'),
    async () => to('192.0.2.2'),
  )
  const lookup = openLookup(resolve, limits)
  expect(await lookup('a.test')).toEqual(to('192.0.2.1'))
  expect(await lookup('a.test')).toEqual(to('192.0.2.2'))
})

test('while the name server does not answer, or fails for a time, the last addresses are used', async () => {
  const { state, resolve } = scripted(
    async () => to('192.0.2.1'),
    () => failing('EAI_AGAIN'),
    hang,
  )
  const lookup = openLookup(resolve, limits)
  for (let at = 0; at < 5; at += 1) expect(await lookup('a.test')).toEqual(to('192.0.2.1'))
  // The one that hangs is waited for by all.
  expect(state.asked).toBe(3)
})

test('a name that is gone is gone at once', async () => {
  const { resolve } = scripted(
    async () => to('192.0.2.1'),
    () => failing('ENOTFOUND'),
    () => failing('EAI_AGAIN'),
  )
  const lookup = openLookup(resolve, limits)
  await lookup('a.test')
  await expect(lookup('a.test')).rejects.toMatchObject({ code: 'ENOTFOUND' })
  await expect(lookup('a.test')).rejects.toMatchObject({ code: 'EAI_AGAIN' })
})

test('addresses that are too old are not used, nor more of them or names than the bounds', async () => {
  const many = Array.from({ length: 50 }, (_, at) => ({ address: `192.0.2.${at}`, family: 4 }))
  const { state, resolve } = scripted(
    async () => many,
    async () => many,
    async () => many,
    () => failing('EAI_AGAIN'),
  )
  const lookup = openLookup(resolve, { ...lookupLimits, namesMax: 2 })
  expect(await lookup('a.test')).toHaveLength(lookupLimits.addressesMax)
  await lookup('b.test')
  await lookup('c.test')
  await lookup('c.test')
  expect(state.asked).toBe(3)
  await expect(lookup('a.test')).rejects.toMatchObject({ code: 'EAI_AGAIN' })
  const old = scripted(
    async () => many,
    () => failing('EAI_AGAIN'),
  )
  const strict = openLookup(old.resolve, { ...limits, staleMs: -1 })
  await strict('a.test')
  await expect(strict('a.test')).rejects.toMatchObject({ code: 'EAI_AGAIN' })
})

import { expect, test } from 'vitest'
import { openBreaths } from '../../src/deliver/breath.ts'

test('at each turn of the event loop one goes on, each in its turn, however many wait', async () => {
  const breaths = openBreaths()
  let turn = 0
  let counting = true
  const count = () => {
    turn += 1
    if (counting) setImmediate(count)
  }
  setImmediate(count)
  const steps: { readonly who: number; readonly turn: number }[] = []
  const work = async (who: number) => {
    const breath = breaths.open(0)
    for (let step = 0; step < 20; step += 1) {
      await breath()
      steps.push({ who, turn })
    }
  }
  await Promise.all([0, 1, 2].map(work))
  counting = false
  expect(new Set(steps.map((step) => step.turn)).size).toBe(steps.length)
  expect(steps.map(({ who }) => who)).toEqual(steps.map((_step, at) => at % 3))
})

test('who has not held it for long does not wait', () => {
  expect(openBreaths().open(60_000)()).toBeUndefined()
})

import { expect, test } from 'vitest'
import { seed } from '../support/seed.ts'
import { everyInstant, expectedMessages } from './expectation.ts'
import { mixedScenario } from './mixed.ts'
import { expectedInParts } from './naive-in-parts.ts'
import { generatePurchases } from './purchases.ts'

test('people evaluated in parts on several threads get the answers they get together', async () => {
  const scenario = mixedScenario(generatePurchases(seed, 120))
  const instants = everyInstant().filter((_, at) => at % 200 === 0)
  const progress: string[] = []
  const found = await expectedInParts(scenario, instants, (done, of) => {
    progress.push(`${done} of ${of}`)
  })
  expect(found.flat().length).toBeGreaterThan(120)
  expect(found).toEqual(expectedMessages(scenario, instants))
  expect(progress).toEqual(['1 of 3', '2 of 3', '3 of 3'])
})

test('what a thread cannot evaluate is an error, not an answer that is missing', async () => {
  const { calls, definitions } = mixedScenario(generatePurchases(seed, 120))
  const joined = [{ ...calls[0], type: 'alias', previousId: 'p' } as (typeof calls)[number]]
  const scenario = { definitions, calls: [...calls, ...joined] }
  await expect(expectedInParts(scenario, [0], () => undefined)).rejects.toThrow('use answers')
})

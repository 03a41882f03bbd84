import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { refusalStatus } from '../../src/collect/answer/answer.ts'
import { collectLimits } from '../../src/collect/limits.ts'
import { rejectionCodes } from '../../src/domain/rejection.ts'
import { faultCodes } from '../../src/fault.ts'

const read = (name: string) => readFile(new URL(`../../docs/${name}`, import.meta.url), 'utf8')

const documented = async (section: string) => {
  const [, text = ''] = (await read('errors.md')).split(`## ${section}\n`)
  const table = text.split('\n## ')[0] ?? ''
  return [...table.matchAll(/^\| `(\w+)` \| (?:(\d+) \|)?/gm)].map(([, code, status]) =>
    status ? `${code} ${status}` : code,
  )
}

test('docs/errors.md has every refusal with its status, and no other', async () => {
  const codes = Object.entries(refusalStatus).map(([code, status]) => `${code} ${status}`)
  expect(await documented('Requests refused')).toEqual(codes)
})

test('docs/errors.md has every rejection, and no other', async () => {
  expect(await documented('Calls rejected')).toEqual([...rejectionCodes])
})

test('docs/errors.md has every fault, and no other', async () => {
  expect(await documented('Faults')).toEqual([...faultCodes])
})

test('docs/http-api.md names the limits that hold', async () => {
  const text = await read('http-api.md')
  for (const limit of ['callBytesMax', 'bodyBytesMax', 'batchCallsMax'] as const)
    expect(text).toContain(collectLimits[limit].toLocaleString('en-US'))
})

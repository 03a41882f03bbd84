import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bytesList, numberList, textList } from '../../src/audience/lists.ts'
import { cloneDatabase } from '../support/database.ts'

const { pool } = await cloneDatabase()

test('Postgres reads written lists as what they were', async () => {
  const text = fc
    .oneof(fc.string({ unit: 'binary' }), fc.string({ unit: fc.constantFrom(...'"\\{},\' N') }))
    .map((value) => value.replaceAll('\0', ''))
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(text, fc.constantFrom('', 'null', 'NULL', null))),
      fc.array(fc.maxSafeInteger()),
      fc.array(fc.uint8Array().map((bytes) => Buffer.from(bytes))),
      async (texts, numbers, values) => {
        const { rows } = await pool.query<{ texts: string[]; numbers: string; values: Buffer[] }>(
          'select $1::text[] as texts, to_json($2::bigint[])::text as numbers, $3::bytea[] as values',
          [textList(texts), numberList(numbers), bytesList(values)],
        )
        expect(rows[0]?.texts).toEqual(texts)
        expect(rows[0]?.values).toEqual(values)
        expect(JSON.parse(rows[0]?.numbers ?? '')).toEqual(numbers.map((number) => number || 0))
      },
    ),
    { numRuns: 200 },
  )
})

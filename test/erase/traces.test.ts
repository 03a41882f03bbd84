// Looking for the traces of an id: found wherever it stands by itself, and nowhere else.
import { afterEach, expect, test } from 'vitest'
import { byteWriter } from '../../src/domain/bytes.ts'
import { findTraces } from '../../src/erase/traces.ts'
import { cloneDatabase } from '../support/database.ts'

const { pool } = await cloneDatabase()
await pool.query(
  'create table kept (n int, "text" text, many text[], document jsonb, body bytea, hash bytea)',
)

afterEach(() => pool.query('truncate kept'))

const rowsWith = async (id: string): Promise<number> =>
  (await findTraces(pool, id)).find(({ table }) => table === 'kept')?.rows ?? 0

const packed = (...texts: readonly string[]): Buffer => {
  const writer = byteWriter()
  for (const text of texts) {
    writer.varint(0)
    writer.text(text)
    // A letter in what comes next.
    writer.varint(0x41)
  }
  return Buffer.from(writer.take(), 'latin1')
}

const bodyOf = (id: string): Buffer => Buffer.from(JSON.stringify({ type: 'track', userId: id }))

const ids = [
  'g5',
  '5',
  'é5',
  'a "quoted" \\ id',
  'x.y+z|(1)',
  '用户',
  'a/b',
  `${'long'.repeat(12)}-1`,
]

test.each(ids)('%s is found as text, in lists, in JSON and in bytes', async (id) => {
  await pool.query('insert into kept ("text") values ($1), ($2), ($3)', [
    id,
    `no user ${id}, he said`,
    JSON.stringify({ error: `unknown\n${id}` }),
  ])
  await pool.query('insert into kept (many) values ($1), ($2)', [
    ['other', id],
    [JSON.stringify({ id })],
  ])
  await pool.query('insert into kept (document) values ($1)', [{ a: [{ [id]: 1 }] }])
  await pool.query('insert into kept (body) values ($1), ($2), ($3)', [
    bodyOf(id),
    packed('other', id, 'other'),
    packed(JSON.stringify(['name', `\t${id}`])),
  ])
  expect(await rowsWith(id)).toBe(9)
})

test.each([
  ['a/b', String.raw`a\/b`],
  ['x é/5', String.raw`x \u00e9/5`],
  ['x é/5', String.raw`x \u00E9\/5`],
  ['"é"', String.raw`\"\u00e9\"`],
  ['😀1', String.raw`\ud83d\ude001`],
])('%s is found as others than we write it in JSON: %s', async (id, written) => {
  const json = `{"error":"${written}"}`
  await pool.query('insert into kept ("text") values ($1)', [json])
  await pool.query('insert into kept (many) values ($1)', [[json]])
  await pool.query('insert into kept (body) values ($1), ($2)', [Buffer.from(json), packed(json)])
  expect(await rowsWith(id)).toBe(4)
})

test('an id of any length is found where it is packed', async () => {
  for (const length of [2, 48, 97, 127, 128]) {
    await pool.query('truncate kept')
    const id = 'q'.repeat(length)
    await pool.query('insert into kept (body) values ($1)', [packed(id, 'other')])
    expect([length, await rowsWith(id)]).toEqual([length, 1])
  }
})

test('an id that is a part of others is not taken for them, nor a number or digest for an id', async () => {
  for (const other of ['g500', 'g59', 'ag5', 'G5']) {
    await pool.query(
      'insert into kept (n, "text", many, document, body) values ($1, $2, $3, $4, $5)',
      [5, other, [other, `${other}, ${other}`], { userId: other }, bodyOf(other)],
    )
    await pool.query('insert into kept (n, body, hash) values (5, $1, $2)', [
      packed(other),
      Buffer.from(' g5 5 '),
    ])
  }
  expect([await rowsWith('g5'), await rowsWith('5')]).toEqual([0, 0])
})

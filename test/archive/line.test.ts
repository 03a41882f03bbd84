// Lines of segments: what is read back equals what the log held, byte for byte.
import { readFile } from 'node:fs/promises'
import avro from 'avsc'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { entryOf, headOf, type Kept, lineOf, linesOf } from '../../src/archive/line.ts'
import { callTypes, digestOf, type Message, type Outbound } from '../../src/domain/message.ts'
import type { Codec } from '../../src/log/log.ts'
import { aCall, codecs, gathered } from './rig.ts'

const call = codecs.call as unknown as Codec<Kept>
const outbound = codecs.outbound as unknown as Codec<Kept>

const backAndForth = (codec: Codec<Kept>, record: Kept, value = codec.encode(record)) => {
  const line = lineOf(codec, { offset: 7n, key: 'k', value }, record)
  expect(line.at(-1)).toBe(10)
  expect(line.indexOf(10)).toBe(line.length - 1)
  const entry = entryOf(codec, line.subarray(0, -1))
  expect(entry.offset).toBe(7n)
  expect(entry.key).toBe('k')
  expect(Buffer.from(entry.value).equals(value)).toBe(true)
  return JSON.parse(line.toString()) as Record<string, unknown>
}

const id = fc.option(fc.string({ unit: 'binary', minLength: 1 }))
const instant = fc.integer({ min: 0, max: 4_102_444_800_000 })
const anyCall = fc
  .record({
    messageId: fc.string({ unit: 'binary' }),
    type: fc.constantFrom(...callTypes),
    workspaceId: fc.integer({ min: 1, max: 2_147_483_647 }),
    sourceId: fc.integer({ min: 1, max: 2_147_483_647 }),
    userId: id,
    anonymousId: id,
    previousId: id,
    groupId: id,
    event: id,
    timestamp: instant,
    originalTimestamp: instant,
    sentAt: fc.option(instant),
    receivedAt: instant,
    filtered: fc.option(fc.constantFrom('source_disabled', 'plan_violated')),
    body: fc
      .dictionary(fc.string({ unit: 'binary' }), fc.jsonValue())
      .map((value) => Buffer.from(JSON.stringify(JSON.parse(JSON.stringify(value))))),
  })
  .map((fields): Message => ({ ...fields, digest: digestOf(fields) }))

test('any call comes back byte for byte, and its line is JSON that holds the body as it is', () => {
  fc.assert(
    fc.property(anyCall, (message) => {
      const line = backAndForth(call, message)
      expect(line['value']).toBeUndefined()
      expect(line['body']).toEqual(JSON.parse(message.body.toString()))
      expect(line['receivedAt']).toBe(message.receivedAt)
    }),
    { numRuns: 200 },
  )
})

test('a message of ours comes back byte for byte', () => {
  const record: Outbound = {
    messageId: 'run-1',
    origin: 'audience',
    type: 'identify',
    workspaceId: 1,
    destinationId: 2,
    userId: 'é"\n,"body":',
    timestamp: 1,
    receivedAt: 2,
    shard: 63,
    seq: 4_503_599_627_370_496,
    body: Buffer.from('{"a":",\\"body\\":"}'),
  }
  expect(backAndForth(outbound, record)['value']).toBeUndefined()
})

test('a call that an earlier release wrote comes back as it was written', async () => {
  const schema = await readFile(new URL('../../schemas/call.1.avsc', import.meta.url), 'utf8')
  const { filtered: _, ...record } = aCall()
  const type = avro.Type.forSchema(JSON.parse(schema))
  const value = Buffer.concat([Buffer.from([0, 0, 0, 0, 0]), type.toBuffer(record)])
  const [decoded] = await codecs.call.decode([value])
  const line = backAndForth(call, decoded as Message, value)
  expect(line['value']).toBeTypeOf('string')
  expect(line['userId']).toBe('u1')
})

test.each([
  ['a body over several lines', '{\n}'],
  ['no object', '[]'],
  ['nothing', ''],
])('a record with %s for its body keeps its line whole', (_, text) => {
  const line = backAndForth(call, aCall({ text }))
  expect(line['body']).toBeNull()
})

test('an offset beyond what a number can say is exact', () => {
  const record = aCall()
  const offset = 9_223_372_036_854_775_806n
  const line = lineOf(call, { offset, key: '', value: call.encode(record) }, record)
  expect(entryOf(call, line.subarray(0, -1)).offset).toBe(offset)
  expect(headOf(line.subarray(0, -1)).offset).toBe(offset)
})

test('lines are found wherever their pieces end, and a last one that is cut off is refused', async () => {
  const whole = Buffer.from('one\ntwo\n\nthree\n')
  for (let size = 1; size <= whole.length; size++) {
    const found: string[] = []
    for await (const lines of linesOf(pieces(whole, size)))
      found.push(...lines.map((line) => line.toString()))
    expect(found).toEqual(['one', 'two', '', 'three'])
  }
  await expect(gathered(linesOf(pieces(Buffer.from('one\ntw'), 4)))).rejects.toThrow('cut off')
})

async function* pieces(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

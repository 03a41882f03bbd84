// The codec with a real schema registry: registered, checked, and read by the client others use.
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { COMPATIBILITY, SchemaRegistry, SchemaType } from '@kafkajs/confluent-schema-registry'
import { describe, expect, inject, test } from 'vitest'
import type { Message, Outbound } from '../../src/domain/message.ts'
import { openCodecs } from '../../src/log/avro.ts'
import { openRegistry } from '../../src/log/registry.ts'

const url = inject('registryUrl') ?? ''

const anOutbound: Outbound = {
  messageId: 'run-1',
  origin: 'audience',
  type: 'identify',
  workspaceId: 1,
  destinationId: 2,
  userId: null,
  timestamp: 1_795_243_218_929,
  receivedAt: 1_795_243_218_930,
  shard: 63,
  seq: 12,
  body: Buffer.from('{}'),
}

const aMessage: Message = {
  messageId: 'm-1',
  digest: Buffer.alloc(16, 7),
  type: 'track',
  workspaceId: 1,
  sourceId: 2,
  userId: 'u1',
  anonymousId: null,
  previousId: null,
  groupId: null,
  event: 'Ordered',
  timestamp: 1_795_243_218_929,
  originalTimestamp: 1_795_243_218_929,
  sentAt: null,
  receivedAt: 1_795_243_218_930,
  body: Buffer.from('{}'),
  filtered: null,
}

const aPrefix = () => `t${randomBytes(4).toString('hex')}.`

type Field = { readonly name: string; readonly type: unknown; readonly default?: unknown }
type Schema = { readonly fields: readonly Field[] }

const outboundSchema = async (change: (fields: readonly Field[]) => readonly Field[]) => {
  const path = new URL('../../schemas/outbound.avsc', import.meta.url)
  const schema = JSON.parse(await readFile(path, 'utf8')) as Schema
  return JSON.stringify({ ...schema, fields: change(schema.fields) })
}

describe.skipIf(url === '')('with a registry', () => {
  test('both ways with the registry client: it reads our values, and we read its', async () => {
    const prefix = aPrefix()
    const { outbound } = await openCodecs({ registry: openRegistry({ url }), prefix })
    const client = new SchemaRegistry({ host: url })
    const ours = Buffer.from(outbound.encode(anOutbound))
    expect(await client.decode(ours)).toEqual(anOutbound)
    const id = await client.getLatestSchemaId(`${prefix}outbound-value`)
    expect(ours.readInt32BE(1)).toBe(id)
    const theirs = await client.encode(id, anOutbound)
    expect(theirs).toEqual(ours)
    expect(await outbound.decode([theirs])).toEqual([anOutbound])
  })

  test('every topic has its subject, and a second start registers nothing new', async () => {
    const prefix = aPrefix()
    const start = () => openCodecs({ registry: openRegistry({ url }), prefix })
    const [first, second] = [await start(), await start()]
    expect(second.outbound.encode(anOutbound)).toEqual(first.outbound.encode(anOutbound))
    for (const topic of ['calls', 'calls.import', 'outbound', 'outbound.replay']) {
      const answer = await fetch(`${url}/subjects/${prefix}${topic}-value/versions`)
      expect(await answer.json(), topic).toEqual([1])
    }
  })

  test('the first release’s schema of calls is followed by this one’s, and both are read', async () => {
    const prefix = aPrefix()
    const client = new SchemaRegistry({ host: url })
    const path = new URL('../../schemas/call.1.avsc', import.meta.url)
    const schema = await readFile(path, 'utf8')
    const firsts: Buffer[] = []
    const { filtered: _, ...first } = aMessage
    for (const topic of ['calls', 'calls.import']) {
      const { id } = await client.register(
        { type: SchemaType.AVRO, schema },
        { subject: `${prefix}${topic}-value`, compatibility: COMPATIBILITY.BACKWARD },
      )
      firsts.push(await client.encode(id, first))
    }
    const { call } = await openCodecs({ registry: openRegistry({ url }), prefix })
    for (const topic of ['calls', 'calls.import']) {
      const answer = await fetch(`${url}/subjects/${prefix}${topic}-value/versions`)
      expect(await answer.json(), topic).toEqual([1, 2])
    }
    const filtered = { ...aMessage, filtered: 'event_not_planned' }
    const ours = call.encode(filtered)
    expect(await client.decode(Buffer.from(ours))).toEqual(filtered)
    const bare = (await openCodecs({})).call.encode(filtered)
    expect(await call.decode([...firsts, ours, bare])).toEqual([
      aMessage,
      aMessage,
      filtered,
      filtered,
    ])
  })

  test('values without a registry’s id are read as this release’s', async () => {
    const bare = await openCodecs({})
    const { outbound } = await openCodecs({ registry: openRegistry({ url }), prefix: aPrefix() })
    expect(await outbound.decode([bare.outbound.encode(anOutbound)])).toEqual([anOutbound])
  })

  test('values of an older version are read through it, fetched once', async () => {
    const prefix = aPrefix()
    const client = new SchemaRegistry({ host: url })
    const older = await outboundSchema((fields) => fields.filter(({ name }) => name !== 'userId'))
    const { id } = await client.register(
      { type: SchemaType.AVRO, schema: older },
      { subject: `${prefix}outbound-value`, compatibility: COMPATIBILITY.BACKWARD },
    )
    const { userId: _, ...rest } = anOutbound
    const value = await client.encode(id, rest)
    const registry = openRegistry({ url })
    const asked: number[] = []
    const { outbound } = await openCodecs({
      prefix,
      registry: {
        ...registry,
        schema: (wanted) => {
          asked.push(wanted)
          return registry.schema(wanted)
        },
      },
    })
    expect(await outbound.decode([value, value])).toEqual([anOutbound, anOutbound])
    expect(outbound.decode([value])).toEqual([anOutbound])
    expect(asked).toEqual([id])
  })

  test('a schema that cannot read its last version stops the start, saying what to do', async () => {
    const prefix = aPrefix()
    const incompatible = await outboundSchema((fields) =>
      fields.filter(({ name }) => name !== 'seq'),
    )
    await new SchemaRegistry({ host: url }).register(
      { type: SchemaType.AVRO, schema: incompatible },
      { subject: `${prefix}outbound-value`, compatibility: COMPATIBILITY.BACKWARD },
    )
    const start = openCodecs({ registry: openRegistry({ url }), prefix })
    await expect(start).rejects.toMatchObject({ code: 'schema_incompatible' })
    await expect(start).rejects.toThrow(/outbound-value.*Start a release/)
  })

  test('a subject that asks for another compatibility is refused too', async () => {
    const prefix = aPrefix()
    const same = await outboundSchema((fields) => fields)
    await new SchemaRegistry({ host: url }).register(
      { type: SchemaType.AVRO, schema: same },
      { subject: `${prefix}outbound-value`, compatibility: COMPATIBILITY.FULL },
    )
    const start = openCodecs({ registry: openRegistry({ url }), prefix })
    await expect(start).rejects.toMatchObject({ code: 'schema_incompatible' })
  })

  test('an id that the registry does not know is schema_unknown', async () => {
    const { outbound } = await openCodecs({ registry: openRegistry({ url }), prefix: aPrefix() })
    const value = Buffer.from(outbound.encode(anOutbound))
    value.writeInt32BE(2_000_000_000, 1)
    await expect(outbound.decode([value])).rejects.toMatchObject({ code: 'schema_unknown' })
  })
})

test('a registry that is away is log_unavailable, and retriable', async () => {
  const registry = openRegistry({ url: 'http://127.0.0.1:9' })
  await expect(openCodecs({ registry })).rejects.toMatchObject({
    code: 'log_unavailable',
    retriable: true,
  })
})

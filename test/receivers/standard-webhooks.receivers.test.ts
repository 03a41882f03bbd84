// The library that receivers of Standard Webhooks use, given what a running deliver stage sends them.
import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { newSharedSecret } from '../../src/control/destination-draft.ts'
import type { Destination } from '../../src/domain/configuration.ts'
import { type CallType, callTypes } from '../../src/domain/message.ts'
import { useRig } from '../deliver/rig.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import type { Received } from '../support/receiver.ts'
import { until } from '../support/until.ts'

type Webhook = { verify(body: Buffer, headers: Record<string, string>): unknown }
type Library = { readonly Webhook: new (secret: string) => Webhook }

const { Webhook } = createRequire(import.meta.url)('standardwebhooks') as Library

const { receiver, open, rowsOf, drained } = await useRig()

const verify = (secret: string, { body, headers }: Received, over: object = {}) =>
  new Webhook(secret).verify(body, { ...(headers as Record<string, string>), ...over })

const signed = (url: string, over: Partial<Destination> = {}) =>
  aDestination({
    webhooks: to(url),
    sharedSecret: newSharedSecret(),
    signatures: { standardWebhooks: true, sha256: false, next: false },
    ...over,
  })

/** The library refuses what is more than five minutes old. */
const inThePresent = (rig: ReturnType<typeof open>) => rig.setNow(Date.now())

const bodies: Readonly<Record<string, object>> = {
  plain: { properties: { price: 1.5 } },
  unicode: { properties: { name: 'Zoë 😀 \u2028 "\\/' } },
  numbers: { properties: { small: 1e-7, large: 1e21, whole: 9_007_199_254_740_991 } },
  keys: JSON.parse('{"properties":{"10":1,"2":2,"a":3,"constructor":4}}'),
  empty: {},
}

test('every message a destination gets verifies, of every type and with all that JSON can hold', async () => {
  const hook = await receiver(null)
  const destination = signed(hook.url)
  const rig = open(aLive({ destinations: [destination] }))
  inThePresent(rig)
  rig.start()
  const types = callTypes.filter((type): type is CallType => type !== 'delete')
  const ids = { groupId: 'g1', previousId: 'p1' }
  const calls = types.flatMap((type) =>
    Object.values(bodies).map((body) => rig.aCall({ type, ...ids, anonymousId: null }, body)),
  )
  await rig.append(calls)
  await drained(rig)
  expect(hook.requests.length).toBe(calls.length)
  const secret = destination.sharedSecret as string
  for (const request of hook.requests) expect(verify(secret, request)).toEqual(request.json)
  expect(new Set(hook.requests.map(({ headers }) => headers['webhook-id']))).toEqual(
    new Set(calls.map(({ messageId }) => messageId)),
  )
})

test('a request that was changed on its way, or signed with another secret, does not', async () => {
  const hook = await receiver(null)
  const destination = signed(hook.url)
  const rig = open(aLive({ destinations: [destination] }))
  inThePresent(rig)
  rig.start()
  await rig.append([rig.aCall({ messageId: 'order.1\n' })])
  await drained(rig)
  const [request] = hook.requests as [Received]
  const secret = destination.sharedSecret as string
  expect(verify(secret, request)).toEqual(request.json)
  const later = String(Number(request.headers['webhook-timestamp']) + 1)
  expect(() => verify(newSharedSecret(), request)).toThrow()
  expect(() => verify(secret, request, { 'webhook-id': 'other' })).toThrow()
  expect(() => verify(secret, request, { 'webhook-timestamp': later })).toThrow()
  const body = Buffer.from(request.body.toString().replace('track', 'trick'))
  expect(() => verify(secret, { ...request, body })).toThrow()
})

test('before a secret is replaced both verify, after it the new one does, under the same id', async () => {
  const hook = await receiver(null)
  hook.reply(() => (hook.requests.length === 1 ? 503 : 200))
  const next = { secret: newSharedSecret(), activateAt: Date.now() + 5_000 }
  const destination = signed(hook.url, { nextSharedSecret: next })
  const rig = open(aLive({ destinations: [destination] }))
  inThePresent(rig)
  rig.start()
  await rig.append([rig.aCall()])
  await until(async () => (await rowsOf('parked')).length === 1, 'it waits for its second try')
  rig.setNow(next.activateAt + 20_000)
  await until(() => hook.requests.length === 2, 'it is tried again')
  const [first, second] = hook.requests as [Received, Received]
  const secret = destination.sharedSecret as string
  expect(verify(secret, first)).toEqual(verify(next.secret, first))
  expect(verify(next.secret, second)).toEqual(first.json)
  expect(() => verify(secret, second)).toThrow()
  expect(second.headers['webhook-id']).toBe(first.headers['webhook-id'])
})

test('a secret of any form verifies by its base64, as the page for receivers says', async () => {
  const hook = await receiver(null)
  const destination = signed(hook.url, { sharedSecret: 'päßwort of ours' })
  const rig = open(aLive({ destinations: [destination] }))
  inThePresent(rig)
  rig.start()
  await rig.append([rig.aCall()])
  await drained(rig)
  const secret = Buffer.from('päßwort of ours').toString('base64')
  expect(verify(secret, hook.requests[0] as Received)).toEqual(hook.requests[0]?.json)
})

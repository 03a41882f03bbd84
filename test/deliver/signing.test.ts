// What a destination may have besides the specification's headers and fields, seen by its receiver.
import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { isFixedPoint } from '../../src/domain/payload.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import type { Received } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, open, rowsOf, drained } = await useRig()

const ofConnection = ['connection', 'content-length', 'host']
const namesOf = ({ headers }: Received) =>
  Object.keys(headers)
    .filter((name) => !ofConnection.includes(name))
    .sort()

const hex = (algorithm: string, secret: string, { body }: Received) =>
  createHmac(algorithm, secret).update(body).digest('hex')

test('by default a request has the headers of the specification and no others', async () => {
  const hook = await receiver()
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start()
  await rig.append([rig.aCall()])
  await drained(rig)
  expect(hook.requests.map(namesOf)).toEqual([['content-type', 'user-agent', 'x-signature']])
})

test('a retry after the switch is signed with the new secret, under the id of the first try', async () => {
  const hook = await receiver(null)
  hook.reply(() => (hook.requests.length === 1 ? 503 : 200))
  const switchAt = Date.UTC(2024, 0, 1, 0, 0, 5)
  const destination = aDestination({
    webhooks: to(hook.url),
    sharedSecret: 'old',
    nextSharedSecret: { secret: 'new', activateAt: switchAt },
    signatures: { standardWebhooks: true, sha256: true, next: true },
  })
  const rig = open(aLive({ destinations: [destination] }))
  rig.start()
  await rig.append([rig.aCall({ messageId: 'order.1' })])
  await until(async () => (await rowsOf('parked')).length === 1, 'it waits for its second try')
  expect(rig.now()).toBeLessThan(switchAt)
  rig.setNow(switchAt + 10_000)
  await until(() => hook.requests.length === 2, 'it is tried again')
  const [first, second] = hook.requests as [Received, Received]
  expect(second.body.equals(first.body)).toBe(true)
  expect(first.headers).toMatchObject({
    'x-signature': hex('sha1', 'old', first),
    'x-signature-next': hex('sha1', 'new', first),
    'x-signature-256': hex('sha256', 'old', first),
    'webhook-id': 'order%2E1',
    'webhook-timestamp': String(Date.UTC(2024, 0, 1) / 1_000),
  })
  expect(String(first.headers['webhook-signature']).split(' ')).toHaveLength(2)
  expect(second.headers).toMatchObject({
    'x-signature': hex('sha1', 'new', second),
    'x-signature-256': hex('sha256', 'new', second),
    'webhook-id': 'order%2E1',
    'webhook-timestamp': String((switchAt + 10_000) / 1_000),
  })
  expect(second.headers).not.toHaveProperty('x-signature-next')
  expect(String(second.headers['webhook-signature']).split(' ')).toHaveLength(1)
})

test('a destination of the full payload gets more of a call than others, and of it what its filters take', async () => {
  const hooks = [await receiver(), await receiver(), await receiver()] as const
  const [spec, full, some] = hooks
  const filters = [{ kind: 'block', paths: ['context.ip'] }] as const
  const rig = open(
    aLive({
      destinations: [
        aDestination({ id: 1, name: 'A', webhooks: to(spec.url) }),
        aDestination({ id: 2, name: 'B', webhooks: to(full.url), payload: 'full' }),
        aDestination({ id: 3, name: 'C', webhooks: to(some.url), payload: 'full', filters }),
      ],
    }),
  )
  rig.start()
  const told = { properties: { price: 1 }, context: { ip: '1.1.1.1', locale: 'de' } }
  await rig.append([rig.aCall({ messageId: 'm-full', anonymousId: 'a1' }, told)])
  await drained(rig)
  expect(Object.keys(spec.requests[0]?.json ?? {})).toEqual(
    'version type userId timestamp properties event'.split(' '),
  )
  const ids = { messageId: 'm-full', anonymousId: 'a1' }
  expect(full.requests.map(({ json }) => json)).toMatchObject([{ ...told, ...ids }])
  expect(some.requests.map(({ json }) => json['context'])).toEqual([{ locale: 'de' }])
  for (const { requests, badSignatures } of hooks) {
    expect(badSignatures).toEqual([])
    expect(requests.every(({ body }) => isFixedPoint(body))).toBe(true)
  }
})

test('a full payload that is tried again goes out as the same bytes', async () => {
  const hook = await receiver()
  hook.reply(() => (hook.requests.length === 1 ? 503 : 200))
  const rig = open(
    aLive({ destinations: [aDestination({ webhooks: to(hook.url), payload: 'full' })] }),
  )
  rig.start()
  await rig.append([rig.aCall()])
  await until(async () => (await rowsOf('parked')).length === 1, 'it waits for its second try')
  rig.setNow(rig.now() + 20_000)
  await until(() => hook.requests.length === 2, 'it is tried again')
  const [first, second] = hook.requests
  expect(first?.json).toHaveProperty('receivedAt')
  expect(second?.body).toEqual(first?.body)
})

// A published SDK sends every kind of call to a running Millrace; the webhook gets each exactly once, in the
// shape its type has.
import { Analytics } from '@segment/analytics-node'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { acceptsWriteKey, apply } from '../support/applied.ts'
import { device, everyCall } from '../support/every-call.ts'
import { ownFolder } from '../support/folder.ts'
import { type MillraceProcess, removeDataDir, startProcess } from '../support/process.ts'
import { openReceiver, type Receiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'

const sharedSecret = 'sdk-secret'
const writeKey = 'wk_sdk'
let receiver: Receiver
let millrace: MillraceProcess
let dataDir: string

beforeAll(async () => {
  receiver = await openReceiver({ secret: sharedSecret })
  dataDir = await ownFolder('sdk')
  millrace = await startProcess({ dataDir })
  const configuration = {
    workspaces: [
      {
        name: 'shop',
        sources: [{ name: 'web', class: 'server', writeKey }],
        destinations: [
          {
            name: 'Webhooks',
            type: 'webhook',
            sources: ['web'],
            sharedSecret,
            webhooks: [{ url: receiver.url }],
          },
        ],
      },
    ],
  }
  await apply(millrace, configuration)
  await acceptsWriteKey(millrace.collectUrl, writeKey)
})

afterAll(async () => {
  await millrace.stop()
  await receiver.close()
  await removeDataDir(dataDir)
})

const timestamp = new Date('2026-01-02T03:04:05.678Z')
const at = '2026-01-02T03:04:05.678Z'
// This process's clock stands still: without this, the time since its start would count as the sender's skew.
const context = { ignoreSentAt: true }

test('every kind of call of the SDK reaches the webhook exactly once, in its shape', async () => {
  const sdk = new Analytics({ writeKey, host: millrace.collectUrl, disable: false })
  const errors: unknown[] = []
  sdk.on('error', (error) => errors.push(error))
  const userId = 'u1'
  sdk.identify({ userId, traits: { email: 'a@example.org', plan: 'pro' }, context, timestamp })
  sdk.track({ userId, event: 'Order Completed', properties: { price: 9.5 }, context, timestamp })
  sdk.page({
    userId,
    name: 'Home',
    properties: { url: 'https://example.org/' },
    context,
    timestamp,
  })
  sdk.screen({ userId, name: 'Cart', context: { ...device, ...context }, timestamp })
  sdk.group({ userId, groupId: 'g1', traits: { 'total seats': 5 }, context, timestamp })
  sdk.alias({ userId: 'u2', previousId: userId, context, timestamp })
  await sdk.closeAndFlush()
  expect(errors).toEqual([])

  await until(() => receiver.requests.length >= 6)
  const expected = everyCall({ userId, newId: 'u2', at })
  for (const [kind, body] of Object.entries(expected))
    expect(bodies().find(({ type }) => type === kind)).toEqual(body)
  await sentinel()
  expect(receiver.requests).toHaveLength(7)
  expect(receiver.badSignatures).toEqual([])
  for (const { headers } of receiver.requests)
    expect(headers['content-type']).toBe('application/json')
})

const bodies = () => receiver.requests.map(({ json }) => json)

/** The same visitor's next call arrives after everything before it: a second copy would be here by then. */
const sentinel = async () => {
  const sdk = new Analytics({ writeKey, host: millrace.collectUrl })
  sdk.track({ userId: 'u1', event: 'Sentinel' })
  await sdk.closeAndFlush()
  await until(() => bodies().some(({ event }) => event === 'Sentinel'))
}

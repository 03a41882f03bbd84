// One test file's part of the shared Millrace: its own sources, and a receiver that keeps what arrives.
import { randomBytes } from 'node:crypto'
import { expect, inject, onTestFinished } from 'vitest'
import { acceptsWriteKey, apply } from '../support/applied.ts'
import { type EveryCall, everyCall } from '../support/every-call.ts'
import { openReceiver, type Receiver } from '../support/receiver.ts'
import { seed } from '../support/seed.ts'
import { until } from '../support/until.ts'
import { type Fault, openProxy, type UnsteadyProxy } from './proxy.ts'

export type Line = {
  readonly collectUrl: string
  readonly receiver: Receiver
  /** What arrived, in the order it came. */
  bodies(): readonly Record<string, unknown>[]
  /** Of one user, whatever an alias calls them. */
  bodiesOf(userId: string): readonly Record<string, unknown>[]
  close(): Promise<void>
}

export type LineSource = {
  readonly name: string
  readonly class: 'web' | 'mobile' | 'server'
  readonly writeKey: string
  readonly callsPerSecondMax?: number
}

const sharedSecret = 'clients-secret'

export const openLine = async (name: string, sources: readonly LineSource[]): Promise<Line> => {
  const { collectUrl, ...admin } = inject('millrace')
  const receiver = await openReceiver({ secret: sharedSecret })
  await apply(admin, {
    workspaces: [
      {
        name,
        sources,
        destinations: [
          {
            name: 'Webhooks',
            type: 'webhook',
            sources: sources.map((source) => source.name),
            sharedSecret,
            webhooks: [{ url: receiver.url }],
          },
        ],
      },
    ],
  })
  for (const { writeKey } of sources) await acceptsWriteKey(collectUrl, writeKey)
  const bodies = () => receiver.requests.map(({ json }) => json)
  return {
    collectUrl,
    receiver,
    bodies,
    bodiesOf: (userId) =>
      bodies().filter(
        (body) =>
          (body['userId'] === userId || body['Previous ID'] === userId) &&
          !String(body['event']).startsWith('sentinel'),
      ),
    close: () => receiver.close(),
  }
}

/** Nobody else's: files and tests share the Millrace. */
export const freshId = (prefix: string) => `${prefix}-${randomBytes(6).toString('hex')}`

const agoMs = 60_000

/** Recent, so that it is no import; whole milliseconds, as every client can write them. */
export const aMinuteAgo = () => new Date(Date.now() - agoMs).toISOString()

/** Whose calls wait for each other. */
export type Chain = {
  readonly writeKey: string
  readonly userId: string
  readonly newId: string
  readonly anonymousId?: string
}

/** `hasScreen`: whether the SDK has screen calls; true when absent. */
export type Wanted = EveryCall & Chain & { readonly hasScreen?: boolean }

const skewMinMs = 5_000
/** What a busy machine took that long to send is taken for that of a clock which is so much behind: it counts as later. */
const inTime = (body: Record<string, unknown>, at: string): object => {
  const timestamp = Date.parse(String(body['timestamp']))
  const isLate = timestamp - Date.parse(at) >= skewMinMs && timestamp <= Date.now() - agoMs
  return isLate ? { ...body, timestamp: at } : body
}

/** One of each kind arrived, in its shape, signed, and nothing twice. */
export const expectEveryCall = async (line: Line, wanted: Wanted): Promise<void> => {
  const { screen: _, ...withoutScreen } = everyCall(wanted)
  const expected = wanted.hasScreen === false ? withoutScreen : everyCall(wanted)
  const kinds = Object.keys(expected)
  await until(
    () => textsOf(line.bodiesOf(wanted.userId)).size >= kinds.length,
    `${kinds.length} calls of ${wanted.userId} arrive`,
  )
  await settled(line, wanted)
  const arrived = await once(line, line.bodiesOf(wanted.userId))
  for (const [kind, body] of Object.entries(expected))
    expect(inTime(arrived.find(({ type }) => type === kind) ?? {}, wanted.at)).toEqual(body)
  expect(arrived).toHaveLength(kinds.length)
  expect(line.receiver.badSignatures).toEqual([])
}

/** The same visitor's next call arrives after everything before it: a second copy would be here by then. */
export const settled = async (line: Line, chain: Chain): Promise<void> => {
  const mark = freshId('sentinel')
  const headers = { authorization: `Basic ${Buffer.from(`${chain.writeKey}:`).toString('base64')}` }
  const visitors = [
    ...new Set([chain.anonymousId ?? chain.userId, chain.anonymousId ?? chain.newId]),
  ]
  for (const [index, visitor] of visitors.entries()) {
    const call = JSON.stringify({
      ...(chain.anonymousId === undefined ? { userId: visitor } : { anonymousId: visitor }),
      event: `${mark} ${index}`,
      // One call, however often it is sent.
      messageId: `${mark} ${index}`,
    })
    const send = () =>
      fetch(`${line.collectUrl}/v1/track`, { method: 'POST', headers, body: call }).then(
        (response) => response.status,
      )
    await until(async () => (await send()) === 200, `${mark} is taken`)
  }
  await until(
    () =>
      visitors.every((_, index) => line.bodies().some(({ event }) => event === `${mark} ${index}`)),
    `${mark} arrives`,
  )
}

/** Every number from 0 to `count` arrived once. */
export const expectNumbers = async (line: Line, chain: Chain, count: number): Promise<void> => {
  const counted = () => line.bodiesOf(chain.userId).filter(({ event }) => event === 'Counted')
  const numbersIn = (bodies: readonly Record<string, unknown>[]) =>
    bodies.map(({ properties }) => (properties as { readonly number: number }).number)
  await until(
    () => new Set(numbersIn(counted())).size >= count,
    `${count} calls of ${chain.userId} arrive`,
  )
  await settled(line, chain)
  const numbers = numbersIn(await once(line, counted()))
  expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, n) => n))
}

/**
 * What arrived, each once. On a machine that hangs for seconds Millrace itself may send a message again, from the one
 * place in the log that it has; what its client sent twice, and was taken twice, has two.
 */
export const once = async (
  line: Line,
  bodies: readonly Record<string, unknown>[],
): Promise<readonly Record<string, unknown>[]> => {
  const byText = textsOf(bodies)
  if (byText.size === bodies.length) return bodies
  let tries: readonly Try[] = []
  await until(async () => {
    tries = await triesAt(line)
    return tries.length >= line.receiver.requests.length
  }, 'every request is in the attempt log')
  const places = Map.groupBy(tries, ({ messageId }) => messageId)
  for (const [messageId, its] of places)
    expect(new Set(its.map(placeOf)).size, `places of ${messageId} in the log`).toBe(1)
  // Bodies carry no id: what its client sent under two of them is one text from two places.
  const delivered = tries.filter(({ outcome }) => outcome === 'delivered')
  const found = new Set(delivered.map(placeOf)).size
  const texts = textsOf(line.bodies()).size
  expect(found, `places of ${texts} texts`).toBeLessThanOrEqual(texts)
  return [...byText.values()]
}

const textsOf = (bodies: readonly Record<string, unknown>[]) =>
  new Map(bodies.map((body) => [JSON.stringify(body), body]))

type Try = {
  readonly messageId: string
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly outcome: string
}

const placeOf = ({ topic, partition, offset }: Try) => `${topic}/${partition}/${offset}`

/** Every request that Millrace says it made to the receiver. */
const triesAt = async ({ receiver }: Line): Promise<readonly Try[]> => {
  const { adminUrl, token } = inject('millrace')
  const tries: Try[] = []
  for (let after: string | null = ''; after !== null; ) {
    const query = new URLSearchParams({ url: receiver.url, limit: '1000' })
    if (after !== '') query.set('after', after)
    const response = await fetch(`${adminUrl}/admin/v1/attempts?${query}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    expect(response.status).toBe(200)
    const page = (await response.json()) as { attempts: readonly Try[]; next: string | null }
    tries.push(...page.attempts)
    after = page.next
  }
  return tries
}

/** For this test alone; nothing is spoiled. */
export const proxyTo = (line: Line): Promise<UnsteadyProxy> => openFor(line, null)

/** For this test alone; one request in a hundred is spoiled, by the seed that a failure prints. */
export const unsteadyProxyTo = (line: Line): Promise<UnsteadyProxy> => openFor(line, seed)

const openFor = async (line: Line, seed: number | null) => {
  const proxy = await openProxy(line.collectUrl, seed)
  onTestFinished(() => proxy.close())
  return proxy
}

/** Three hundred requests meet each kind of fault once. */
export const expectEveryFault = (proxy: UnsteadyProxy): void => {
  const met = proxy.posts().flatMap(({ fault }): Fault[] => (fault === null ? [] : [fault]))
  expect(met.slice(0, 3).toSorted()).toEqual(['429', '503', '503 once stored'])
}

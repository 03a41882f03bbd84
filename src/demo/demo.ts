// The demo: a shop calls through a published SDK, Millrace computes and delivers, a receiver checks.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { openReceiver } from './receiver.ts'
import { openShop, type Sdk, seeded } from './shop.ts'
import { openTally, type Tally } from './tally.ts'
import { configure, demoWriteKey, syncNow, type Target } from './target.ts'

type Options = {
  readonly target: Target
  readonly seconds: number
  readonly print: (line: string) => void
  readonly stopping: AbortSignal
}

const limits = {
  /** Between two acts of the shop. */
  actEveryMs: 150,
  syncEveryMs: 5_000,
  /** For what is still under way when the shop closes. */
  settleMs: 15_000,
  /** A new configuration is taken up within this time. */
  takeUpMs: 5_000,
}

/** Resolves with whether every call arrived exactly once and well signed. */
export const runDemo = async (options: Options): Promise<boolean> => {
  const { target, print, seconds } = options
  const run = randomBytes(3).toString('hex')
  const secret = randomBytes(16).toString('hex')
  const tally = openTally(run, Date.now())
  const receiver = await openReceiver(secret, (arrival) => print(tally.arrived(arrival)))
  try {
    await configure(target, { url: receiver.url, secret })
    await waitForWriteKey(target)
    print(`The shop is open for ${seconds} s; its webhooks arrive at ${receiver.url}.`)
    await keepShop(options, run, tally)
    await settle(tally)
  } finally {
    await receiver.close()
  }
  const { lines, ok } = tally.summary()
  for (const line of lines) print(line)
  return ok
}

/** An empty batch is refused or taken by key alone: 401 means the key is not known yet. */
const waitForWriteKey = async ({ collectUrl }: Target): Promise<void> => {
  const authorization = `Basic ${Buffer.from(`${demoWriteKey}:`).toString('base64')}`
  for (const until = Date.now() + limits.takeUpMs; Date.now() < until; await sleep(100)) {
    const response = await fetch(new URL('/v1/batch', collectUrl), {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: '{"batch":[]}',
    })
    await response.arrayBuffer()
    if (response.status !== 401) return
  }
  throw new Error(`the write key ${demoWriteKey} was not taken up within ${limits.takeUpMs} ms`)
}

const keepShop = async (options: Options, run: string, tally: Tally): Promise<void> => {
  const { target, stopping, print } = options
  const { sdk, close } = await openSdk(target, print)
  const closing = AbortSignal.any([stopping, AbortSignal.timeout(options.seconds * 1_000)])
  const shop = openShop({ sdk, run, random: seeded(7) })
  const syncs = keepSyncing(target, closing, print)
  while (!closing.aborted) {
    tally.sent(shop.act())
    await sleep(limits.actEveryMs, undefined, { signal: closing }).catch(() => undefined)
  }
  await close()
  await syncs
  await syncNow(target, AbortSignal.timeout(limits.settleMs))
}

/** What the published SDK is told: another host, and nothing else that matters. */
const openSdk = async ({ collectUrl }: Target, print: (line: string) => void) => {
  const { Analytics } = await import('@segment/analytics-node').catch((cause: unknown) => {
    throw new Error('the demo needs @segment/analytics-node: run npm ci with devDependencies', {
      cause,
    })
  })
  const analytics = new Analytics({
    writeKey: demoWriteKey,
    host: collectUrl,
    flushInterval: 500,
    flushAt: 20,
  })
  analytics.on('error', ({ code }) => print(`the SDK reports ${code}`))
  return {
    sdk: analytics as Sdk,
    close: () => analytics.closeAndFlush({ timeout: limits.settleMs }),
  }
}

const keepSyncing = async (
  target: Target,
  closing: AbortSignal,
  print: (line: string) => void,
): Promise<void> => {
  while (!closing.aborted) {
    await sleep(limits.syncEveryMs, undefined, { signal: closing }).catch(() => undefined)
    if (closing.aborted) return
    const emitted = await syncNow(target, AbortSignal.timeout(60_000))
    print(`          sync      ${emitted} memberships changed`)
  }
}

const settle = async (tally: Tally): Promise<void> => {
  for (const until = Date.now() + limits.settleMs; Date.now() < until; await sleep(100))
    if (tally.isComplete()) break
  // The last sync's messages, and anything that came twice, are behind the calls.
  await sleep(1_000)
}

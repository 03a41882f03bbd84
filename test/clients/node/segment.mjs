// Drives analytics-node as its application would: one JSON order as argument, one JSON outcome on stdout.
import { Analytics } from '@segment/analytics-node'
import { everyCall, manyCalls } from './calls.mjs'

const order = JSON.parse(process.argv[2])
const client = new Analytics({
  writeKey: order.writeKey,
  host: order.host,
  ...(order.kind === 'many' ? { flushAt: 1 } : {}),
})
const errors = []
client.on('error', (error) => errors.push(String(error.reason ?? error.code)))
const calls = order.kind === 'many' ? manyCalls(order) : everyCall(order)
for (const { kind, ...call } of calls) client[kind](call)
await client.closeAndFlush({ timeout: 60_000 })
process.stdout.write(`${JSON.stringify({ sent: calls.length, errors })}\n`)

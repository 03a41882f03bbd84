// Drives rudder-sdk-node as its application would: one JSON order as argument, one JSON outcome on stdout.
import RudderAnalytics from '@rudderstack/rudder-sdk-node'
import { everyCall, manyCalls } from './calls.mjs'

const order = JSON.parse(process.argv[2])
const errors = []
const client = new RudderAnalytics(order.writeKey, {
  dataPlaneUrl: order.host,
  gzip: order.gzip !== false,
  flushAt: order.kind === 'many' ? 1 : 20,
  flushInterval: 200,
  errorHandler: (error) => errors.push(String(error)),
})
const calls = order.kind === 'many' ? manyCalls(order) : everyCall(order)
// Its first call is sent at once and alone; the others wait for each other.
await Promise.all(
  calls.map(
    ({ kind, ...call }) => new Promise((resolve) => client[kind](call, () => resolve(undefined))),
  ),
).then(undefined, (error) => errors.push(String(error)))
process.stdout.write(`${JSON.stringify({ sent: calls.length, errors })}\n`)
process.exit(0)

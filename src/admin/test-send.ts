// The route that posts one sample message to each URL of a destination, signed as a real one; it is no delivery.
import { randomUUID } from 'node:crypto'
import Type from 'typebox'
import { readState } from '../control/state.ts'
import type { Destination, Webhook } from '../domain/configuration.ts'
import type { CallType, JsonObject } from '../domain/message.ts'
import { render, renderFull } from '../domain/payload.ts'
import { isReservedHeader } from '../domain/reserved-header.ts'
import { signedHeaders } from '../domain/signature.ts'
import type { PostResult } from '../http/post.ts'
import { failure, notFound, ok } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { idParams, named, nullable } from './views.ts'

const types = [
  'identify',
  'track',
  'page',
  'screen',
  'group',
  'alias',
] as const satisfies readonly CallType[]

const phase = nullable(Type.Number({ minimum: 0 }))

const TestView = named('TestSend', {
  messageId: Type.String(),
  body: Type.String({ description: 'What was sent, byte for byte.' }),
  signed: Type.Boolean(),
  results: Type.Array(
    Type.Object({
      url: Type.String(),
      outcome: Type.String({ description: 'delivered, temporary or final.' }),
      reason: nullable(Type.String()),
      status: nullable(Type.Integer()),
      durationMs: Type.Integer({ minimum: 0 }),
      dnsMs: phase,
      connectMs: phase,
      tlsMs: phase,
      firstByteMs: phase,
      responseHead: nullable(Type.String({ description: 'The first bytes of the answer.' })),
    }),
  ),
})

export const testSendRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'POST',
    path: '/admin/v1/destinations/:id/test',
    operation: 'testDestination',
    summary:
      'Post a sample message to each URL now, whatever state it is in; nothing is counted or retried',
    access: 'admin',
    params: idParams,
    body: Type.Object(
      { type: Type.Optional(Type.Enum([...types])) },
      { additionalProperties: false },
    ),
    bodyOptional: true,
    answers: { 200: { description: 'What each URL answered.', schema: TestView } },
    handle: async ({ params, body: { type = 'track' } }) => {
      const { destinations } = await readState(deps.pool, deps.keyring)
      const destination = destinations.get(params.id)
      if (!destination) return notFound(`destination ${params.id}`)
      if (!deps.post) return failure('not_ready', 'this process posts nothing')
      return ok(await send(deps, { destination, type, post: deps.post }))
    },
  }),
]

type Sending = {
  readonly destination: Destination
  readonly type: CallType
  readonly post: NonNullable<AdminDeps['post']>
}

const send = async (deps: AdminDeps, { destination, type, post }: Sending) => {
  const now = deps.clock().getTime()
  const messageId = `millrace-test-${randomUUID()}`
  const message = {
    ...sample,
    messageId,
    type,
    timestamp: now,
    originalTimestamp: now,
    receivedAt: now,
  }
  const body = (destination.payload === 'full' ? renderFull : render)(message, sampleCall)
  const signed = signedHeaders(destination, { messageId, body }, now)
  const results = await Promise.all(
    destination.webhooks.map(async (webhook) => {
      const headers = { 'Content-Type': 'application/json', ...ownHeaders(webhook), ...signed }
      const tls = tlsOf(webhook)
      const request = { url: webhook.url, headers, body }
      return viewOf(webhook, await post(tls ? { ...request, tls } : request))
    }),
  )
  deps.logger.info(
    { destinationId: destination.id, type, outcomes: results.map(({ outcome }) => outcome) },
    'destination.tested',
  )
  return { messageId, body: body.toString('utf8'), signed: Object.keys(signed).length > 0, results }
}

const ownHeaders = ({ headers }: Webhook) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !isReservedHeader(name)))

const tlsOf = ({ ca, clientCertificate }: Webhook) =>
  ca === null && clientCertificate === null
    ? null
    : { ...(ca === null ? {} : { ca }), ...(clientCertificate ?? {}) }

const viewOf = ({ url }: Webhook, { answer, status, durationMs, phases, head }: PostResult) => ({
  url,
  outcome: answer.type,
  reason: answer.type === 'delivered' ? null : answer.reason,
  status,
  durationMs: Math.round(durationMs),
  ...{ dnsMs: phases.dnsMs, connectMs: phases.connectMs },
  ...{ tlsMs: phases.tlsMs, firstByteMs: phases.firstByteMs },
  responseHead: head === '' ? null : head,
})

/** Of nobody: receivers can tell it by its user. */
const sample = {
  userId: 'millrace-test-user',
  anonymousId: 'millrace-test-visitor',
  previousId: 'millrace-test-visitor',
  groupId: 'millrace-test-group',
  event: 'Millrace Test',
}

const sampleCall: JsonObject = {
  event: 'Millrace Test',
  name: 'Millrace Test',
  properties: { test: true },
  traits: { test: true },
  context: { library: { name: 'millrace-test' } },
}

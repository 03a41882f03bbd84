// Routes of a destination's URLs: how each is doing, and posting to one again that is held or disabled.
import Type from 'typebox'
import { insertAudit } from '../control/audit.ts'
import { readState } from '../control/state.ts'
import { notFound, ok, refusal } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { enableUrl, loadStandings } from './url-store.ts'
import { dateTime, idParams, named, nullable } from './views.ts'

const path = '/admin/v1/destinations/:id/urls'

const words = <const W extends readonly string[]>(all: W) =>
  Type.Union(all.map((word) => Type.Literal(word)))

const UrlView = named('UrlStanding', {
  url: Type.String(),
  state: words(['ok', 'rejecting', 'held_tls', 'disabled']),
  breaker: words(['closed', 'open', 'ramp']),
  limit: nullable(
    Type.Integer({ description: 'Requests at a time it gets now; null: as many as it may get.' }),
  ),
  reason: nullable(Type.String({ description: 'The answer that made it so.' })),
  status: nullable(Type.Integer()),
  since: nullable(dateTime),
})

const listed = Type.Object({ urls: Type.Array(UrlView) })

export const urlRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path,
    operation: 'listUrls',
    summary: 'How the URLs of a destination are doing',
    access: 'viewer',
    params: idParams,
    answers: { 200: { description: 'In the order they are configured.', schema: listed } },
    handle: async ({ params }) => {
      const destination = (await readState(deps.pool)).destinations.get(params.id)
      if (!destination) return notFound(`destination ${params.id}`)
      const urls = destination.webhooks.map(({ url }) => url)
      const asked = { destinationId: params.id, urls, at: deps.clock() }
      return ok({ urls: await loadStandings(deps.pool, asked) })
    },
  }),
  route({
    method: 'POST',
    path: `${path}/enable`,
    operation: 'enableUrl',
    summary: 'Post again to a URL that is rejecting, held for its certificate, or disabled',
    access: 'admin',
    params: idParams,
    body: Type.Object({ url: Type.String() }, { additionalProperties: false }),
    answers: { 200: { description: 'The URLs as they are now.', schema: listed } },
    handle: async ({ params, body, actor }) => {
      const destination = (await readState(deps.pool)).destinations.get(params.id)
      if (!destination) return notFound(`destination ${params.id}`)
      const urls = destination.webhooks.map(({ url }) => url)
      const { url } = body
      if (!urls.includes(url)) {
        const message = 'url must be one of the URLs of the destination'
        return refusal([{ code: 'field_invalid', path: '/url', message }])
      }
      await deps.pool.transaction(async (tx) => {
        if (!(await enableUrl(tx, { destinationId: params.id, url }))) return
        await insertAudit(tx, [
          {
            actor: actor.name,
            action: 'changed',
            kind: 'destination',
            entityId: params.id,
            name: destination.name,
            changes: { urlEnabled: { to: URL.parse(url)?.host ?? '' } },
          },
        ])
      })
      const asked = { destinationId: params.id, urls, at: deps.clock() }
      return ok({ urls: await loadStandings(deps.pool, asked) })
    },
  }),
]

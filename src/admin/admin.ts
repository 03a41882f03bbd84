// The admin stage: configuration, forced syncs, and a look at users and deliveries, over HTTP.
import { type AddressInfo, isIPv6 } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Running } from '../running.ts'
import { audienceRoutes } from './audiences.ts'
import { configurationRoutes } from './configuration.ts'
import { deliveryRoutes } from './deliveries.ts'
import { type AdminDeps, adminLimits } from './deps.ts'
import { destinationRoutes } from './destinations.ts'
import { documentOf } from './openapi.ts'
import { documentRoute, operationRoutes } from './operations.ts'
import type { Route } from './route.ts'
import { buildServer } from './server.ts'
import { sourceRoutes } from './sources.ts'
import { syncRoutes } from './syncs.ts'
import { auditRoutes, tokenRoutes } from './tokens.ts'
import { userRoutes } from './users.ts'
import { workspaceRoutes } from './workspaces.ts'

export const startAdmin = async (deps: AdminDeps): Promise<Running & { readonly url: string }> => {
  const { drainMsMax } = { ...adminLimits, ...deps.limits }
  const stopping = new AbortController()
  const app = buildServer(deps, routesOf(deps), stopping.signal)
  await app.listen({ host: deps.host, port: deps.port })
  const { address, port } = app.server.address() as AddressInfo
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  let stopped: Promise<void> | null = null
  return {
    url: `http://${isIPv6(address) ? `[${address}]` : address}:${port}`,
    done,
    stop: () => {
      stopping.abort()
      stopped ??= drain(app, drainMsMax).then(resolve, reject)
      return stopped.then(() => done)
    },
  }
}

const drain = async (app: FastifyInstance, msMax: number): Promise<void> => {
  const timer = setTimeout(() => app.server.closeAllConnections(), msMax)
  await app.close()
  clearTimeout(timer)
}

export const routesOf = (deps: AdminDeps): readonly Route[] => {
  const routes = [
    ...workspaceRoutes(deps),
    ...sourceRoutes(deps),
    ...destinationRoutes(deps),
    ...deliveryRoutes(deps),
    ...audienceRoutes(deps),
    ...syncRoutes(deps),
    ...userRoutes(deps),
    ...configurationRoutes(deps),
    ...tokenRoutes(deps),
    ...auditRoutes(deps),
    ...operationRoutes(deps),
  ]
  const document = documentRoute(() => documentOf([...routes, document], deps.version ?? '0'))
  return [...routes, document]
}

// The admin stage: configuration, forced syncs, and a look at users and deliveries, over HTTP.
import { type AddressInfo, isIPv6 } from 'node:net'
import { drain } from '../drain.ts'
import type { Running } from '../running.ts'
import { archiveRoutes } from './archive.ts'
import { attemptRoutes } from './attempts.ts'
import { audienceRoutes } from './audiences.ts'
import { configurationRoutes } from './configuration.ts'
import { deadRoutes } from './dead.ts'
import { debuggerRoutes } from './debugger.ts'
import { deletionRoutes } from './deletions.ts'
import { deliveryRoutes } from './deliveries.ts'
import { type AdminDeps, adminLimits } from './deps.ts'
import { destinationSecretRoutes } from './destination-secret.ts'
import { destinationRoutes } from './destinations.ts'
import { explainRoutes } from './explain.ts'
import { explainTraitRoutes } from './explain-trait.ts'
import { historyRoutes } from './history.ts'
import { importRoutes } from './imports.ts'
import { documentOf } from './openapi.ts'
import { documentRoute, operationRoutes } from './operations.ts'
import { pipelineRoutes } from './pipeline.ts'
import { previewRoutes } from './preview.ts'
import { rebuildRoutes } from './rebuilds.ts'
import { recoveryRoutes } from './recoveries.ts'
import { replayRoutes } from './replays.ts'
import type { Route } from './route.ts'
import { buildServer } from './server.ts'
import { sourceRoutes } from './sources.ts'
import { syncRoutes } from './syncs.ts'
import { testSendRoutes } from './test-send.ts'
import { auditRoutes, tokenRoutes } from './tokens.ts'
import { urlRoutes } from './urls.ts'
import { usageRoutes } from './usage.ts'
import { userRoutes } from './users.ts'
import { violationRoutes } from './violations.ts'
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

export const routesOf = (deps: AdminDeps): readonly Route[] => {
  const routes = [
    ...workspaceRoutes(deps),
    ...sourceRoutes(deps),
    ...debuggerRoutes(deps),
    ...violationRoutes(deps),
    ...destinationRoutes(deps),
    ...destinationSecretRoutes(deps),
    ...deliveryRoutes(deps),
    ...attemptRoutes(deps),
    ...deadRoutes(deps),
    ...recoveryRoutes(deps),
    ...replayRoutes(deps),
    ...rebuildRoutes(deps),
    ...urlRoutes(deps),
    ...testSendRoutes(deps),
    ...audienceRoutes(deps),
    ...explainRoutes(deps),
    ...explainTraitRoutes(deps),
    ...previewRoutes(deps),
    ...historyRoutes(deps),
    ...syncRoutes(deps),
    ...userRoutes(deps),
    ...deletionRoutes(deps),
    ...importRoutes(deps),
    ...configurationRoutes(deps),
    ...tokenRoutes(deps),
    ...auditRoutes(deps),
    ...usageRoutes(deps),
    ...archiveRoutes(deps),
    ...pipelineRoutes(deps),
    ...operationRoutes(deps),
  ]
  const document = documentRoute(() => documentOf([...routes, document], deps.version ?? '0'))
  return [...routes, document]
}

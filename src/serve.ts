// The composition root: opens what a process needs, starts its roles, and stops them along the line.
import type { Logger } from 'pino'
import manifest from '../package.json' with { type: 'json' }
import { startAdmin } from './admin/admin.ts'
import { startCollect } from './collect/collect.ts'
import { allowsPrivateDestinations, type Config, type Role } from './config.ts'
import type { FirstStart } from './control/first-start.ts'
import { openLive } from './control/live.ts'
import { type Database, openDatabase } from './database.ts'
import { startDeliver } from './deliver/deliver.ts'
import type { Live } from './domain/configuration.ts'
import { Fault } from './fault.ts'
import { undiciPost } from './http/undici-post.ts'
import { type Metrics, openMetrics } from './metrics.ts'
import { type Log, openLog } from './open-log.ts'
import { openClock } from './postgres/clock.ts'
import { startHeartbeat } from './postgres/heartbeat.ts'
import { prepareConfiguration } from './prepare-configuration.ts'
import { startProject } from './project/project.ts'
import type { Clock, Running } from './running.ts'
import { closing, type Part, supervise } from './supervise.ts'
import { findSyncRun, requestSync } from './sync/request.ts'
import { startSync } from './sync/sync.ts'

export type Millrace = Running & {
  /** `null` without the role. */
  readonly collectUrl: string | null
  readonly adminUrl: string | null
  readonly firstStart: FirstStart
}

type Options = {
  readonly config: Config
  readonly logger: Logger
  /** Database time when absent. */
  readonly clock?: Clock
}

/** Resolves when every role takes work. Parts stop in the reverse of the order they start. */
export const startMillrace = async (options: Options): Promise<Millrace> => {
  const { logger } = options
  const parts: Part[] = []
  try {
    const urls = await startParts(options, (part) => parts.unshift(part))
    return { ...supervise(parts, logger), ...urls }
  } catch (error) {
    await supervise(parts, logger).stop()
    throw error
  }
}

type Add = (part: Part) => void

const startParts = async (options: Options, add: Add): Promise<Omit<Millrace, keyof Running>> => {
  const { config, logger } = options
  const database = await openDatabase({ config, logger, shared: false })
  add(closing('database', database.stop, database.done))
  const clock = options.clock ?? (await databaseClock(database, { logger, add }))
  const firstStart = await prepareConfiguration({ pool: database.pool, config, logger })
  const log = await openLog({ config, pool: database.pool, clock, logger })
  add(closing('log', log.close))
  const live = await openLive({ pool: database.pool, logger, clock })
  add(closing('configuration', live.close))
  let ready = false
  const metrics = openMetrics()
  const isReady = () => ready
  const deps = { ...options, ...log, pool: database.pool, live, clock, metrics, isReady }
  add({ name: 'heartbeat', running: await heartbeat(deps) })
  const adminUrl = await startReaders(deps, add)
  const collectUrl = await startEdge(deps, add)
  add(
    closing('readiness', async () => {
      ready = false
    }),
  )
  ready = true
  return { collectUrl, adminUrl, firstStart }
}

type Deps = Options &
  Log & {
    readonly pool: Database['pool']
    readonly live: Live
    readonly clock: Clock
    readonly metrics: Metrics
    /** Between the start of the last role and the first stop. */
    readonly isReady: () => boolean
  }

type ClockDeps = { readonly logger: Logger; readonly add: Add }

const databaseClock = async (database: Database, { logger, add }: ClockDeps): Promise<Clock> => {
  const { clock, stop } = await openClock({
    sql: database.pool,
    onError: (error) => logger.warn({ err: error }, 'clock.not_sampled'),
  })
  add(closing('clock', async () => stop()))
  return clock
}

const heartbeat = (deps: Deps) =>
  startHeartbeat({
    sql: deps.pool,
    clock: deps.clock,
    version: manifest.version,
    roles: deps.config.roles,
    configurationVersion: () => deps.live.now().version,
    onError: (error) => deps.logger.warn({ err: error }, 'heartbeat.missed'),
  })

const startReaders = async (deps: Deps, add: Add): Promise<string | null> => {
  const { config } = deps
  const has = (role: Role) => config.roles.includes(role)
  const admin = has('admin')
    ? await startAdmin(adminDeps(deps)).catch(portTaken('MILLRACE_ADMIN_PORT', config.adminPort))
    : null
  if (admin) add({ name: 'admin', running: admin })
  if (has('deliver')) {
    const post = undiciPost()
    add(closing('post', post.close))
    add({ name: 'deliver', running: startDeliver({ ...deps, post }) })
  }
  if (has('project')) add({ name: 'project', running: startProject(deps) })
  if (has('sync')) add({ name: 'sync', running: startSync(deps) })
  return admin?.url ?? null
}

const adminDeps = (deps: Deps) => ({
  ...deps,
  host: deps.config.host,
  port: deps.config.adminPort,
  allowPrivateDestinations: allowsPrivateDestinations(deps.config),
  requestSync,
  findSyncRun,
  version: manifest.version,
})

/** Of the 30 s a drain may take, what open requests may use: the stages after it need the rest. */
const drainMsMax = 8_000

const startEdge = async (deps: Deps, add: Add): Promise<string | null> => {
  const { config } = deps
  if (!config.roles.includes('collect')) return null
  const collect = await startCollect({
    ...deps,
    host: config.host,
    port: config.collectPort,
    limits: { drainMsMax },
    region: config.region,
    count: deps.metrics.count,
    trustedProxies: config.trustedProxies,
    probe: () => deps.source.bounds('calls'),
  }).catch(portTaken('MILLRACE_COLLECT_PORT', config.collectPort))
  add({ name: 'collect', running: collect })
  return collect.url
}

const portTaken =
  (variable: string, port: number) =>
  (error: unknown): never => {
    const { code } = error as { code?: unknown }
    if (code === 'EADDRINUSE')
      throw new Fault(
        'port_taken',
        `port ${port} is taken by another program: stop it, or set ${variable} to another port (0: any free one)`,
        { cause: error },
      )
    if (code === 'EADDRNOTAVAIL' || code === 'EACCES')
      throw new Fault(
        'port_taken',
        `this machine does not let us listen there (${(error as Error).message}): set MILLRACE_HOST or ${variable}`,
        { cause: error },
      )
    throw error
  }

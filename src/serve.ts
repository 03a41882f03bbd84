// The composition root: opens what a process needs, starts its roles, and stops them along the line.
import type { Logger } from 'pino'
import manifest from '../package.json' with { type: 'json' }
import { startAdmin } from './admin/admin.ts'
import { startArchive } from './archive/archive.ts'
import { erasures } from './archive/erased.ts'
import { archivingOf } from './archiving.ts'
import { addAudienceFigures } from './audience-metrics.ts'
import { startCollect } from './collect/collect.ts'
import { addressRulesOf, type Config, type Role, readsSecrets } from './config.ts'
import type { FirstStart } from './control/first-start.ts'
import { openLive } from './control/live.ts'
import type { Keyring } from './control/secret.ts'
import { type Database, openDatabase } from './database.ts'
import { type Debugger, openDebugger, unwatched } from './debugger/debugger.ts'
import { type Alerts, openAlerts } from './deliver/alerts.ts'
import { searchAttempts } from './deliver/attempt-store.ts'
import { startDeliver } from './deliver/deliver.ts'
import type { Live } from './domain/configuration.ts'
import type { Pipeline } from './domain/pipeline.ts'
import { unnoted, type Violations } from './domain/tracking-plan.ts'
import { startErase } from './erase/erase.ts'
import type { OpenSuppressions } from './erase/suppressions.ts'
import { Fault } from './fault.ts'
import { openPost } from './http/open-post.ts'
import type { Post } from './http/post.ts'
import { keepingOf } from './keeping.ts'
import { type Metrics, openMetrics } from './metrics.ts'
import { openPast, type Past } from './open-archive.ts'
import { importsOf } from './open-imports.ts'
import { openKeyring } from './open-keyring.ts'
import { type Log, openLog } from './open-log.ts'
import { openPipeline } from './pipeline/pipeline.ts'
import { startViolations } from './pipeline/violations.ts'
import { openClock } from './postgres/clock.ts'
import { openCollectors } from './postgres/collectors.ts'
import { prepareConfiguration } from './prepare-configuration.ts'
import { startProject } from './project/project.ts'
import { startRebuild } from './rebuild/rebuild.ts'
import { countReplay } from './replay/count.ts'
import { startReplay } from './replay/replay.ts'
import type { Clock, Running } from './running.ts'
import { closing, type Part, supervise } from './supervise.ts'
import { startSuppressing } from './suppressing.ts'
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
  const keyring = await openKeyring(config)
  const firstStart = await prepareConfiguration({ pool: database.pool, config, logger, keyring })
  const log = await openLog({ config, pool: database.pool, clock, logger })
  add(closing('log', log.close))
  const read = readsSecrets(config) ? keyring : null
  const live = await openLive({ pool: database.pool, logger, clock, keyring: read })
  add(closing('configuration', live.close))
  let ready = false
  const metrics = openMetrics()
  const isReady = () => ready
  const pipeline = openPipeline({ sql: database.pool, clock, logger, tell: metrics.countCalls })
  metrics.beforeText(pipeline.tellAll)
  add({ name: 'pipeline', running: pipeline })
  addAudienceFigures(metrics, database.pool)
  const shared = {
    ...options,
    ...log,
    ...openPast({ config, pool: database.pool, ...log }),
    pool: database.pool,
    openPool: database.openPool,
    live,
    refresh: live.refresh,
    clock,
    metrics,
    pipeline,
    keyring,
  }
  const violations = noting(shared, add)
  const suppressions = await startSuppressing(shared, add)
  const told = { debugger: await tellingDebugger(shared, add), suppressions }
  const deps = { ...shared, ...told, isReady, violations }
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
  Log &
  Past & {
    readonly pool: Database['pool']
    readonly openPool: Database['openPool']
    readonly live: Live
    readonly refresh: () => Promise<void>
    readonly clock: Clock
    readonly metrics: Metrics
    readonly pipeline: Pipeline
    readonly debugger: Debugger
    readonly suppressions: OpenSuppressions
    readonly violations: Violations
    readonly keyring: Keyring
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

/** Where calls are judged; who watches them asks the database. */
const tellingDebugger = async (
  deps: Pick<Deps, 'pool' | 'clock' | 'logger' | 'config'>,
  add: Add,
): Promise<Debugger> => {
  const { roles } = deps.config
  if (!roles.includes('collect') && !roles.includes('project')) return unwatched
  const telling = await openDebugger(deps)
  add(closing('debugger', telling.close))
  return telling
}

/** Where calls are judged: as they come, or imported. */
const noting = (deps: Pick<Deps, 'pool' | 'clock' | 'logger' | 'config'>, add: Add): Violations => {
  const { roles } = deps.config
  if (!roles.includes('collect') && !roles.includes('admin')) return unnoted
  const violations = startViolations(deps)
  add({ name: 'violations', running: violations })
  return violations
}

const startReaders = async (deps: Deps, add: Add): Promise<string | null> => {
  const { config } = deps
  const has = (role: Role) => config.roles.includes(role)
  const post =
    has('admin') || has('deliver') ? openPost({ addresses: addressRulesOf(config) }) : null
  if (post) add(closing('post', post.close))
  const imports = has('admin') ? importsOf(deps) : null
  const admin = has('admin')
    ? await startAdmin({
        ...adminDeps(deps),
        ...(imports ? { imports } : {}),
        ...(post ? { post } : {}),
      }).catch(portTaken('MILLRACE_ADMIN_PORT', config.adminPort))
    : null
  if (admin) add({ name: 'admin', running: admin })
  // Before it: a chunk that waits for its turn waits no longer.
  if (imports) add(closing('imports', async () => imports.close()))
  if (has('deliver') && post) {
    add({
      name: 'deliver',
      running: startDeliver({
        ...deps,
        meter: deps.metrics.meter,
        ...alertsOf(deps, { post, add }),
        post,
        probe: post.probe,
        limits: keepingOf(config),
      }),
    })
    add({ name: 'replay', running: startReplay({ ...deps, meter: deps.metrics.replay }) })
  }
  if (has('project')) {
    add({ name: 'project', running: startProject(deps) })
    add({ name: 'rebuild', running: startRebuild({ ...deps, meter: deps.metrics.rebuild }) })
    add({ name: 'erase', running: startErase({ ...deps, ended: deps.metrics.deletionEnded }) })
  }
  if (has('sync')) add({ name: 'sync', running: startSync(deps) })
  if (has('archive') && deps.store !== null)
    add({ name: 'archive', running: startArchive(archiveDeps(deps, deps.store)) })
  return admin?.url ?? null
}

type AlertDeps = { readonly post: Post; readonly add: Add }

/** Only where an operator has a URL for them. */
const alertsOf = (deps: Deps, { post, add }: AlertDeps): { readonly alerts?: Alerts } => {
  const { operatorWebhookUrl: url, operatorWebhookSecret: secret } = deps.config
  if (url === null) return {}
  const alerts = openAlerts({
    ...deps,
    post,
    url,
    secret,
    meter: deps.metrics.meter,
  })
  add(closing('alerts', alerts.stop))
  return { alerts }
}

const archiveDeps = (deps: Deps, store: NonNullable<Deps['store']>) => ({
  ...deps,
  ...archivingOf(deps.config),
  store,
  erasures,
  meter: deps.metrics.archive,
})

const adminDeps = (deps: Deps) => ({
  ...deps,
  source: { ...deps.source, ...deps.history },
  host: deps.config.host,
  port: deps.config.adminPort,
  addresses: addressRulesOf(deps.config),
  requestSync,
  findSyncRun,
  searchAttempts,
  countReplay,
  version: manifest.version,
})

/** Of the 30 s a drain may take, what open requests may use: the stages after it need the rest. */
const drainMsMax = 8_000

const startEdge = async (deps: Deps, add: Add): Promise<string | null> => {
  const { config } = deps
  if (!config.roles.includes('collect')) return null
  const collectors = await openCollectors({
    sql: deps.pool,
    clock: deps.clock,
    onError: (error) => deps.logger.warn({ err: error }, 'collectors.not_counted'),
  })
  add(closing('collectors', collectors.close))
  const collect = await startCollect({
    ...deps,
    collectors: collectors.now,
    host: config.host,
    port: config.collectPort,
    limits: { drainMsMax },
    region: config.region,
    count: deps.metrics.count,
    trustedProxies: config.trustedProxies,
    publicUrl: config.publicUrl,
    always200: config.always200,
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

// The collect stage: takes calls over HTTP and appends them to the log before it answers 200.
import type { Logger } from 'pino'
import { type Debugger, unwatched } from '../debugger/debugger.ts'
import { type Live, type Region, regions } from '../domain/configuration.ts'
import { type Network, readNetwork, trustsIn } from '../domain/ip.ts'
import type { Message } from '../domain/message.ts'
import { type Pipeline, uncounted } from '../domain/pipeline.ts'
import { nobodySuppressed, type Suppressions } from '../domain/suppression.ts'
import { unnoted, type Violations } from '../domain/tracking-plan.ts'
import { drain } from '../drain.ts'
import { Fault } from '../fault.ts'
import type { Appender, Codec } from '../log/log.ts'
import type { Clock, Running } from '../running.ts'
import { placeOf } from './answer/place.ts'
import { openApp } from './app.ts'
import { type Count, countNothing } from './count.ts'
import { openLoad } from './gate/load.ts'
import { openPressure } from './gate/pressure.ts'
import { openQuotas } from './gate/quota.ts'
import { messageIds } from './judge/message-id.ts'
import { openPlans } from './judge/plan.ts'
import { type CollectLimits, collectLimits, openBodyBytesMax } from './limits.ts'
import { openReadiness } from './readiness.ts'
import { openLookAgain } from './request/look-again.ts'

export type CollectDeps = {
  readonly appender: Appender
  readonly codecs: { readonly call: Codec<Message> }
  readonly live: Live
  /** Brings `live` up to what is saved; absent: it follows by itself. */
  readonly refresh?: () => Promise<void>
  readonly clock: Clock
  readonly logger: Logger
  readonly host: string
  /** 0 lets the system choose. */
  readonly port: number
  readonly limits?: Partial<CollectLimits>
  /** The default region when absent. */
  readonly region?: Region
  readonly count?: Count
  /** Where the fates of calls are counted; nowhere when absent. */
  readonly pipeline?: Pipeline
  /** Where what breaks tracking plans is counted; nowhere when absent. */
  readonly violations?: Violations
  /** Told what becomes of the calls of watched sources; nobody watches when absent. */
  readonly debugger?: Debugger
  /** Whose calls are dropped, and answered as if they were not; nobody's when absent. */
  readonly suppressions?: Suppressions
  /** Addresses and networks whose X-Forwarded-For is believed; none by default. */
  readonly trustedProxies?: readonly string[]
  /** How many processes collect, and share every source's quota; this one alone when absent. */
  readonly collectors?: () => number
  /** Where clients reach this stage; without it, the host they asked. */
  readonly publicUrl?: string | null
  /** Whether what can never succeed is answered as if it had. */
  readonly always200?: boolean
  /** Resolves when the log answers: asked for readiness while nothing is being appended. */
  readonly probe?: () => Promise<unknown>
}

export type Collect = Running & { readonly url: string }

export const startCollect = async (deps: CollectDeps): Promise<Collect> => {
  const limits = { ...collectLimits, ...deps.limits }
  const readiness = openReadiness(deps.probe)
  const load = openLoad(limits)
  let stopping: Promise<void> | null = null
  const app = openApp(
    {
      appender: deps.appender,
      codec: deps.codecs.call,
      live: deps.live,
      lookAgain: openLookAgain(deps.refresh),
      clock: deps.clock,
      logger: deps.logger,
      limits,
      region: deps.region ?? regions[0],
      count: deps.count ?? countNothing,
      messageId: messageIds(() => deps.clock().getTime()),
      bodyBytesMax: openBodyBytesMax(limits),
      pressure: openPressure(limits.inFlightBytesMax),
      load,
      quotas: openQuotas({ collectors: deps.collectors ?? (() => 1) }),
      pipeline: deps.pipeline ?? uncounted,
      plans: openPlans({ violations: deps.violations ?? unnoted, logger: deps.logger }),
      debugger: deps.debugger ?? unwatched,
      suppressions: deps.suppressions ?? nobodySuppressed,
      always200: deps.always200 ?? false,
      appended: readiness.appended,
    },
    {
      trusts: trustsIn((deps.trustedProxies ?? []).map(networkOf)),
      place: deps.publicUrl ? placeOf(deps.publicUrl) : null,
      isReady: readiness.isReady,
      isStopping: () => stopping !== null,
    },
  )
  const url = await app.listen({ host: deps.host, port: deps.port })
  deps.logger.info({ url }, 'collect.started')
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  app.server.on('error', reject)
  const end = async () => {
    await drain(app, limits.drainMsMax)
    load.stop()
    deps.logger.info('collect.stopped')
    resolve()
  }
  return {
    url,
    done,
    stop: () => {
      stopping ??= end()
      return stopping
    },
  }
}

const networkOf = (text: string): Network => {
  const network = readNetwork(text)
  if (network === null) throw new Fault('config_invalid', `"${text}" is no address or network`)
  return network
}

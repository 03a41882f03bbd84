// The collect stage: takes calls over HTTP and appends them to the log before it answers 200.
import type { Logger } from 'pino'
import { type Live, type Region, regions } from '../domain/configuration.ts'
import type { Message } from '../domain/message.ts'
import type { Appender, Codec } from '../log/log.ts'
import type { Clock, Running } from '../running.ts'
import { openApp } from './app.ts'
import { type Count, countNothing } from './count.ts'
import { type CollectLimits, collectLimits } from './limits.ts'
import { messageIds } from './message-id.ts'
import { openPressure } from './pressure.ts'
import { openReadiness } from './readiness.ts'

export type CollectDeps = {
  readonly appender: Appender
  readonly codecs: { readonly call: Codec<Message> }
  readonly live: Live
  readonly clock: Clock
  readonly logger: Logger
  readonly host: string
  /** 0 lets the system choose. */
  readonly port: number
  readonly limits?: Partial<CollectLimits>
  /** The default region when absent. */
  readonly region?: Region
  readonly count?: Count
  /** Addresses and networks whose X-Forwarded-For is believed; none by default. */
  readonly trustedProxies?: readonly string[]
  /** Resolves when the log answers: asked for readiness while nothing is being appended. */
  readonly probe?: () => Promise<unknown>
}

export type Collect = Running & { readonly url: string }

export const startCollect = async (deps: CollectDeps): Promise<Collect> => {
  const limits = { ...collectLimits, ...deps.limits }
  const readiness = openReadiness(deps.probe)
  let stopping: Promise<void> | null = null
  const app = openApp(
    {
      appender: deps.appender,
      codec: deps.codecs.call,
      live: deps.live,
      clock: deps.clock,
      logger: deps.logger,
      limits,
      region: deps.region ?? regions[0],
      count: deps.count ?? countNothing,
      messageId: messageIds(() => deps.clock().getTime()),
      pressure: openPressure(limits.inFlightBytesMax),
      appended: readiness.appended,
    },
    {
      trustedProxies: deps.trustedProxies ?? [],
      isReady: readiness.isReady,
      isStopping: () => stopping !== null,
    },
  )
  const url = await app.listen({ host: deps.host, port: deps.port })
  deps.logger.info({ url }, 'collect.started')
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  app.server.on('error', reject)
  const drain = async () => {
    // A client that never finishes its request must not hold up the process.
    const deadline = setTimeout(() => app.server.closeAllConnections(), limits.drainMsMax)
    // A connection may fall idle only after closing began, when its client sent more than we read.
    const idle = setInterval(() => app.server.closeIdleConnections(), 50)
    await app.close()
    clearTimeout(deadline)
    clearInterval(idle)
    deps.logger.info('collect.stopped')
    resolve()
  }
  return {
    url,
    done,
    stop: () => {
      stopping ??= drain()
      return stopping
    },
  }
}

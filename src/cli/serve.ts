// `millrace serve`: runs the roles of this process until it is told to stop.
import { describeConfig } from '../config.ts'
import { watchHeap } from '../heap.ts'
import { openLogger } from '../logger.ts'
import { startMillrace } from '../serve.ts'
import { bannerOf } from './banner.ts'
import { type Command, text } from './command.ts'
import { untilSignal } from './signals.ts'

/** From the signal to the exit. */
const drainMsMax = 30_000

export const command: Command = {
  name: 'serve',
  summary: 'run Millrace: collect, project, sync, deliver and admin, or some of them',
  usage: ['[--roles collect,project,…]'],
  options: { roles: { type: 'string' } },
  run: async (call) => {
    const asked = text(call, 'roles')
    const config = asked === null ? call.config : call.configWith({ MILLRACE_ROLES: asked })
    const logger = openLogger({ level: config.logLevel, pretty: call.terminal.isTTY })
    logger.info({ config: describeConfig(config) }, 'millrace.starting')
    watchHeap()
    const began = performance.now()
    const signal = untilSignal(drainMsMax, logger)
    const millrace = await startMillrace({ config, logger })
    const durationMs = Math.round(performance.now() - began)
    logger.info({ roles: config.roles, durationMs }, 'millrace.started')
    for (const line of bannerOf(millrace, config)) call.terminal.out(line)
    // `done` below tells how the stop ended.
    signal.then(() => millrace.stop()).catch(() => undefined)
    try {
      await millrace.done
    } catch (error) {
      logger.fatal({ err: error }, 'millrace.died')
      return 1
    }
    logger.info('millrace.stopped')
    return 0
  },
}

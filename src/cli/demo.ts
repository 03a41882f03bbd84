// `millrace demo`: a synthetic shop against an embedded Millrace of its own, or against a running one.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { runDemo } from '../demo/demo.ts'
import type { Target } from '../demo/target.ts'
import { openLogger } from '../logger.ts'
import { startMillrace } from '../serve.ts'
import { type Call, type Command, text } from './command.ts'

const secondsDefault = 100
const secondsMax = 3_600

export const command: Command = {
  name: 'demo',
  summary: 'run a lively shop through a published SDK and print what its webhooks receive',
  usage: [
    '[--seconds N]',
    '[--seconds N] --collect-url URL --admin-url URL --admin-token TOKEN (against a running Millrace)',
  ],
  options: {
    seconds: { type: 'string' },
    'collect-url': { type: 'string' },
    'admin-url': { type: 'string' },
    'admin-token': { type: 'string' },
  },
  run: async (call) => {
    const seconds = Number(text(call, 'seconds') ?? secondsDefault)
    if (!Number.isInteger(seconds) || seconds < 1 || seconds > secondsMax) {
      call.terminal.err(`millrace demo: --seconds takes a whole number from 1 to ${secondsMax}`)
      return 2
    }
    const stopping = new AbortController()
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopping.abort())
    const { target, stop } = await openTarget(call)
    try {
      const print = (line: string) => call.terminal.out(line)
      const ok = await runDemo({ target, seconds, print, stopping: stopping.signal })
      return ok ? 0 : 1
    } finally {
      await stop()
    }
  },
}

const openTarget = async (call: Call): Promise<{ target: Target; stop(): Promise<void> }> => {
  const collectUrl = text(call, 'collect-url')
  const adminUrl = text(call, 'admin-url')
  const token = text(call, 'admin-token')
  if (collectUrl !== null && adminUrl !== null && token !== null)
    return { target: { collectUrl, adminUrl, token }, stop: async () => undefined }
  return ownMillrace(call)
}

/** On its own directory and free ports: it may run beside the one that is used in earnest. */
const ownMillrace = async (call: Call) => {
  const token = randomBytes(16).toString('hex')
  const config = {
    ...call.configWith({
      MILLRACE_DATA_DIR: join(call.config.dataDir, 'demo'),
      MILLRACE_COLLECT_PORT: '0',
      MILLRACE_ADMIN_PORT: '0',
      MILLRACE_HOST: '127.0.0.1',
      MILLRACE_ROLES: '',
      MILLRACE_DATABASE_URL: '',
      MILLRACE_KAFKA_BROKERS: '',
      MILLRACE_SCHEMA_REGISTRY_URL: '',
      MILLRACE_ADMIN_TOKEN: token,
      MILLRACE_APPLY: '',
    }),
  }
  call.terminal.out('Starting a Millrace of its own …')
  const logger = openLogger({ level: 'warn', pretty: call.terminal.isTTY })
  const millrace = await startMillrace({ config, logger })
  const { collectUrl, adminUrl } = millrace
  call.terminal.out(`Collection ${collectUrl}, admin ${adminUrl}.`)
  return {
    target: { collectUrl: collectUrl ?? '', adminUrl: adminUrl ?? '', token },
    stop: () => millrace.stop(),
  }
}

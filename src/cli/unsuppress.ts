// `millrace unsuppress`: hears users again who were suppressed.
import { adminOptions, withAdmin } from './client.ts'
import type { Command } from './command.ts'
import { idOptions, idsOf, request } from './deletion-request.ts'

export const command: Command = {
  name: 'unsuppress',
  summary: 'take the calls of suppressed users again',
  usage: ['USER_ID… [--anonymous-id ID] [--file FILE|-] [--workspace NAME]'],
  options: { ...adminOptions, ...idOptions },
  positionals: { min: 0, max: 5_000 },
  run: (call) =>
    withAdmin(call, async (ask) =>
      request(call, ask, { kind: 'unsuppress', ...(await idsOf(call, call.positionals)) }),
    ),
}

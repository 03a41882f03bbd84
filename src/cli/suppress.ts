// `millrace suppress`: drops every call of users from now on, and leaves their profiles as they are.
import { adminOptions, withAdmin } from './client.ts'
import type { Command } from './command.ts'
import { idOptions, idsOf, request } from './deletion-request.ts'

export const command: Command = {
  name: 'suppress',
  summary: 'drop the calls of users from now on',
  usage: ['USER_ID… [--anonymous-id ID] [--file FILE|-] [--workspace NAME]'],
  options: { ...adminOptions, ...idOptions },
  positionals: { min: 0, max: 5_000 },
  run: (call) =>
    withAdmin(call, async (ask) =>
      request(call, ask, { kind: 'suppress_only', ...(await idsOf(call, call.positionals)) }),
    ),
}

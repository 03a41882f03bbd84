// `millrace sync`: runs a sync now and returns when its messages are in the log.
import { setTimeout as sleep } from 'node:timers/promises'
import { loadAudiences } from './audience.ts'
import { type Ask, adminOptions, failing, print, theOne, withAdmin } from './client.ts'
import { type Call, type Command, flag } from './command.ts'
import { loadTraits } from './trait.ts'

const pollMs = 250

export const command: Command = {
  name: 'sync',
  summary: 'sync one audience or computed trait, or all of them, now',
  usage: ['NAME [--all-members] [--workspace NAME]', '--all [--all-members] [--workspace NAME]'],
  options: {
    ...adminOptions,
    workspace: { type: 'string' },
    all: { type: 'boolean' },
    'all-members': { type: 'boolean' },
  },
  positionals: { min: 0, max: 1 },
  run: (call) =>
    withAdmin(call, async (ask) => {
      const audienceIds = await idsOf(call, ask)
      const requested = await ask<Sync>({
        method: 'POST',
        path: '/admin/v1/sync?wait=false',
        body: { audienceIds, ...(flag(call, 'all-members') ? { allMembers: true } : {}) },
      })
      const sync = await ended(ask, requested)
      print(call, sync, [
        ['sync', String(sync.id)],
        ['state', sync.state],
        ['messages', String(sync.emitted)],
        ...(sync.reason === null ? [] : [['reason', sync.reason] as const]),
      ])
      return sync.state === 'finished' ? 0 : 1
    }),
}

type Sync = {
  readonly id: number
  readonly state: 'requested' | 'running' | 'finished' | 'failed'
  readonly emitted: number
  readonly reason: string | null
}

const idsOf = async (call: Call, ask: Ask): Promise<readonly number[]> => {
  const [name] = call.positionals
  if ((name === undefined) !== flag(call, 'all'))
    throw failing(['name one audience or computed trait, or say --all'], 2)
  const audiences = [...(await loadAudiences(call, ask)), ...(await loadTraits(call, ask))]
  return name === undefined
    ? audiences.map(({ id }) => id)
    : [theOne(audiences, 'audience or computed trait', name).id]
}

const ended = async (ask: Ask, requested: Sync): Promise<Sync> => {
  for (let sync = requested; ; ) {
    if (sync.state === 'finished' || sync.state === 'failed') return sync
    await sleep(pollMs)
    sync = await ask<Sync>({ path: `/admin/v1/syncs/${sync.id}` })
  }
}

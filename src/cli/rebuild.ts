// `millrace rebuild`: folds the state of all users anew from the log, and swaps it in.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Ask, adminOptions, failing, print, withAdmin } from './client.ts'
import { type Call, type Command, flag } from './command.ts'

const pollMs = 500

export const command: Command = {
  name: 'rebuild',
  summary:
    'fold the state of all users anew from the log, compare it with the live one, swap it in',
  usage: [
    'start [--verify] [--from-kept] [--accept-differences] [--wait]',
    'status [ID]',
    'accept ID',
    'cancel ID',
  ],
  options: {
    ...adminOptions,
    verify: { type: 'boolean' },
    'from-kept': { type: 'boolean' },
    'accept-differences': { type: 'boolean' },
    wait: { type: 'boolean' },
  },
  positionals: { min: 1, max: 2 },
  run: (call) =>
    withAdmin(call, (ask) => {
      const [verb, id] = call.positionals
      if (verb === 'start' && id === undefined) return start(call, ask)
      if (verb === 'status') return status(call, ask, id)
      if ((verb === 'accept' || verb === 'cancel') && id !== undefined)
        return steer(call, ask, `${path}/${idOf(id)}/${verb}`)
      throw failing(['say "start", "status [ID]", "accept ID" or "cancel ID"'], 2)
    }),
}

const path = '/admin/v1/rebuilds'

type Rebuild = {
  readonly id: number
  readonly state: string
  readonly reason: string | null
  readonly users: number | null
  readonly differing: number | null
  readonly differences:
    | readonly { readonly identity: string; readonly parts: readonly string[] }[]
    | null
  readonly progress: { readonly folded: number; readonly live: number } | null
}

const idOf = (given: string): string => {
  if (/^[1-9]\d{0,8}$/.test(given)) return given
  throw failing([`"${given}" is no rebuild's id: "millrace rebuild status" shows them`], 2)
}

const start = async (call: Call, ask: Ask): Promise<number> => {
  const body = {
    verifyOnly: flag(call, 'verify'),
    fromKept: flag(call, 'from-kept'),
    acceptDifferences: flag(call, 'accept-differences'),
  }
  const made = await ask<Rebuild>({ method: 'POST', path, body })
  // Who compares waits for what comes of it.
  const waits = flag(call, 'wait') || flag(call, 'verify')
  return tell(call, waits ? await rested(ask, made) : made)
}

const resting = ['differs', 'swapped', 'verified', 'cancelled', 'failed']

const rested = async (ask: Ask, made: Rebuild): Promise<Rebuild> => {
  for (let now = made; ; now = await ask<Rebuild>({ path: `${path}/${made.id}` })) {
    if (resting.includes(now.state)) return now
    await sleep(pollMs)
  }
}

const status = async (call: Call, ask: Ask, id: string | undefined): Promise<number> => {
  if (id !== undefined) return tell(call, await ask<Rebuild>({ path: `${path}/${idOf(id)}` }))
  const found = await ask<{ rebuilds: readonly Rebuild[] }>({ path })
  print(call, found, [
    ['REBUILD', 'STATE', 'FOLDED', 'USERS', 'DIFFERING', 'REASON'],
    ...found.rebuilds.map(
      (each) =>
        [
          String(each.id),
          each.state,
          foldedOf(each),
          String(each.users ?? ''),
          String(each.differing ?? ''),
          each.reason ?? '',
        ] as const,
    ),
  ])
  return 0
}

const steer = async (call: Call, ask: Ask, to: string): Promise<number> => {
  tell(call, await ask<Rebuild>({ method: 'POST', path: to }))
  return 0
}

const foldedOf = ({ progress }: Rebuild): string => {
  if (progress === null) return ''
  const share = progress.live === 0 ? 1 : progress.folded / progress.live
  return `${progress.folded} of ${progress.live} (${Math.floor(share * 100)} %)`
}

/** Exit code 1 where something is for a person to decide. */
const tell = (call: Call, rebuild: Rebuild): number => {
  const { id, state, reason, users, differing, differences } = rebuild
  print(call, rebuild, [
    ['rebuild', String(id)],
    ['state', state],
    ...(rebuild.progress === null ? [] : [['folded', foldedOf(rebuild)] as const]),
    ...(users === null ? [] : [['users compared', String(users)] as const]),
    ...(differing === null ? [] : [['differing', String(differing)] as const]),
    ...(differences ?? []).map(
      ({ identity, parts }) => ['differs', `${personOf(identity)}: ${parts.join(', ')}`] as const,
    ),
    ...(reason === null ? [] : [['reason', reason] as const]),
  ])
  return state === 'failed' || state === 'differs' || (differing ?? 0) > 0 ? 1 : 0
}

/** "0:u1" is the user u1, "1:a1" the visitor a1. */
const personOf = (identity: string): string =>
  `${identity.startsWith('0:') ? 'user' : 'visitor'} ${identity.slice(2)}`

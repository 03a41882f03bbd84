// `millrace audience versions` and `sizes`, and the same of computed traits: how they came to be.
import { type Ask, failing, print, theOne } from './client.ts'
import type { Call } from './command.ts'
import { loadSynced } from './synced.ts'

type Shape = { readonly path: string; readonly plural: string; readonly noun: string }

type Versions = {
  readonly versions: readonly {
    readonly version: number
    readonly at: string
    readonly actor: string
    readonly changes: Readonly<Record<string, { readonly from?: unknown; readonly to?: unknown }>>
  }[]
}

type Sizes = {
  readonly sizes: readonly {
    readonly syncId: number
    readonly at: string
    readonly members: number
    readonly anonymousMembers: number
  }[]
}

export const historyUsage = ['versions NAME [--workspace NAME]', 'sizes NAME [--workspace NAME]']

export const versions =
  (shape: Shape) =>
  async (call: Call, ask: Ask): Promise<number> => {
    const found = await ask<Versions>({ path: `${await pathOf(call, ask, shape)}/versions` })
    print(call, found, [
      ['VERSION', 'AT', 'BY', 'CHANGED'],
      ...found.versions.map(
        ({ version, at, actor, changes }) =>
          [String(version), at, actor, changesText(changes)] as const,
      ),
    ])
    return 0
  }

/** The first version says all of itself. */
const changesText = (changes: Versions['versions'][number]['changes']): string => {
  const changed = Object.entries(changes).filter(([, change]) => 'from' in change)
  if (changed.length === 0) return Object.keys(changes).length > 0 ? 'created' : ''
  return changed
    .map(([field, { from, to }]) => `${field}: ${JSON.stringify(from)} → ${JSON.stringify(to)}`)
    .join('; ')
}

export const sizes =
  (shape: Shape) =>
  async (call: Call, ask: Ask): Promise<number> => {
    const found = await ask<Sizes>({ path: `${await pathOf(call, ask, shape)}/sizes` })
    print(call, found, [
      ['SYNC', 'AT', 'USERS', 'ANONYMOUS'],
      ...found.sizes.map(
        ({ syncId, at, members, anonymousMembers }) =>
          [String(syncId), at, String(members), String(anonymousMembers)] as const,
      ),
    ])
    return 0
  }

const pathOf = async (call: Call, ask: Ask, shape: Shape): Promise<string> => {
  const [verb, name] = call.positionals
  if (name === undefined) throw failing([`say "${verb} NAME"`], 2)
  return `${shape.path}/${theOne(await loadSynced(call, ask, shape), shape.noun, name).id}`
}

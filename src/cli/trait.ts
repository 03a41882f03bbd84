// `millrace trait`: lists computed traits, shows one, and adds one.
import type { Ask } from './client.ts'
import type { Call, Command } from './command.ts'
import { historyUsage, sizes, versions } from './history.ts'
import { loadSynced, type Synced, syncedCommand } from './synced.ts'
import { explainTrait, explainTraitUsage } from './trait-explain.ts'

type Trait = Synced & {
  readonly measure: object
  readonly text: string
  readonly retractOnDelete: boolean
  readonly users: number
}

const shape = { path: '/admin/v1/traits', plural: 'traits', noun: 'computed trait' }

export const command: Command = syncedCommand<Trait>({
  ...shape,
  name: 'trait',
  defined: 'measure',
  summary:
    'list computed traits with how many users have one, show or add one, explain one, and how it came to be',
  verbs: { explain: explainTrait, versions: versions(shape), sizes: sizes(shape) },
  usage: [explainTraitUsage, ...historyUsage],
  options: { at: { type: 'string' }, anonymous: { type: 'boolean' } },
  switches: { 'retract-on-delete': 'retractOnDelete' },
  columns: [['USERS', ({ users }) => String(users)]],
  lines: ({ users, text, measure, retractOnDelete }) => [
    ['users', String(users)],
    ['on deletion', retractOnDelete ? 'users are told' : 'nobody is told'],
    ['measure', text],
    ['as JSON', JSON.stringify(measure)],
  ],
})

export const loadTraits = (call: Call, ask: Ask): Promise<readonly Synced[]> =>
  loadSynced(call, ask, shape)

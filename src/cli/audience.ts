// `millrace audience`: lists audiences, shows one, and adds one.
import { explain, explainUsage } from './audience-explain.ts'
import { preview, previewUsage } from './audience-preview.ts'
import type { Ask } from './client.ts'
import type { Call, Command } from './command.ts'
import { historyUsage, sizes, versions } from './history.ts'
import { loadSynced, type Synced, syncedCommand } from './synced.ts'

type Audience = Synced & {
  readonly where: object
  readonly text: string
  readonly scope: string
  readonly includeAnonymous: boolean
  readonly entryEvents: boolean
  readonly retractOnDelete: boolean
  readonly members: number
  readonly anonymousMembers: number
}

const shape = { path: '/admin/v1/audiences', plural: 'audiences', noun: 'audience' }

export const command: Command = syncedCommand<Audience>({
  ...shape,
  name: 'audience',
  defined: 'where',
  summary: 'list audiences, show or add one, and say who is in it, why, and who would be',
  verbs: { explain, preview, versions: versions(shape), sizes: sizes(shape) },
  usage: [explainUsage, previewUsage, ...historyUsage],
  options: { anonymous: { type: 'boolean' }, at: { type: 'string' } },
  switches: {
    'include-anonymous': 'includeAnonymous',
    'entry-events': 'entryEvents',
    'retract-on-delete': 'retractOnDelete',
  },
  columns: [
    ['MEMBERS', ({ members }) => String(members)],
    ['ANONYMOUS', ({ anonymousMembers }) => String(anonymousMembers)],
  ],
  lines: ({ members, anonymousMembers, text, where, ...audience }) => [
    ['members', `${members}, ${anonymousMembers} of them anonymous`],
    ['about', audience.scope === 'account' ? 'accounts, and so their users' : 'users'],
    ['anonymous', audience.includeAnonymous ? 'included' : 'left out'],
    ['entry events', audience.entryEvents ? 'sent' : 'not sent'],
    ['on deletion', audience.retractOnDelete ? 'members are told' : 'nobody is told'],
    ['where', text],
    ['as JSON', JSON.stringify(where)],
  ],
})

export const loadAudiences = (call: Call, ask: Ask): Promise<readonly Synced[]> =>
  loadSynced(call, ask, shape)

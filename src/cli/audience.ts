// `millrace audience`: lists audiences, shows one, and adds one.
import type { Ask } from './client.ts'
import type { Call, Command } from './command.ts'
import { loadSynced, type Synced, syncedCommand } from './synced.ts'

type Audience = Synced & {
  readonly where: object
  readonly text: string
  readonly includeAnonymous: boolean
  readonly entryEvents: boolean
  readonly retractOnDelete: boolean
  readonly members: number
  readonly anonymousMembers: number
}

const shape = { path: '/admin/v1/audiences', plural: 'audiences' }

export const command: Command = syncedCommand<Audience>({
  ...shape,
  name: 'audience',
  noun: 'audience',
  defined: 'where',
  summary: 'list audiences with their members, show one, or add one',
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
    ['anonymous', audience.includeAnonymous ? 'included' : 'left out'],
    ['entry events', audience.entryEvents ? 'sent' : 'not sent'],
    ['on deletion', audience.retractOnDelete ? 'members are told' : 'nobody is told'],
    ['where', text],
    ['as JSON', JSON.stringify(where)],
  ],
})

export const loadAudiences = (call: Call, ask: Ask): Promise<readonly Synced[]> =>
  loadSynced(call, ask, shape)

// How the admin API shows what a condition would do: sizes with and without anonymous users, and some ids.
import Type from 'typebox'
import type { Preview } from '../audience/preview.ts'
import type { Tally } from '../audience/survey.ts'
import { dateTime, named, nullable } from './views.ts'

const count = Type.Integer({ minimum: 0 })

const TallyView = Type.Object({
  users: { ...count, description: 'Those without a user id included.' },
  identifiedUsers: {
    ...count,
    description: 'Those with a user id: whom destinations are told of.',
  },
  sample: Type.Array(Type.String({ description: 'A user id.' })),
})

export const PreviewView = named('Preview', {
  at: dateTime,
  exact: Type.Boolean({
    description: 'false: reckoned from the users, or the calls, that were read.',
  }),
  readFrom: Type.Union([Type.Literal('users'), Type.Literal('log')], {
    description: 'users: all is kept of users already; log: past calls had to be read.',
  }),
  users: { ...count, description: 'Of the workspace, members or not.' },
  usersRead: count,
  callsRead: nullable({ ...count, description: 'null when no calls had to be read.' }),
  members: TallyView,
  entering: nullable(TallyView),
  leaving: nullable(TallyView),
})

type Shown = { readonly at: number; readonly isEdit: boolean }

export const previewView = (found: Preview, { at, isEdit }: Shown) => ({
  at: new Date(at),
  exact: found.isExact,
  readFrom: found.log === null ? 'users' : 'log',
  users: found.users,
  usersRead: found.usersRead,
  callsRead: found.log?.calls ?? null,
  members: tallyView(found.members),
  entering: isEdit ? tallyView(found.entering) : null,
  leaving: isEdit ? tallyView(found.leaving) : null,
})

const tallyView = ({ users, identified, sample }: Tally) => ({
  users,
  identifiedUsers: identified,
  sample,
})

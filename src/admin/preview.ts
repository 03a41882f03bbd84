// Routes that try a condition before it is saved: how many users, which, and what an edit would change.
import Type, { type Static } from 'typebox'
import { readFolded, readWorked } from '../audience/look.ts'
import { type Preview, preview, previewLimits } from '../audience/preview.ts'
import { previewAccounts } from '../audience/preview-accounts.ts'
import { audienceDefaults, scopeProblems } from '../control/audience.ts'
import { definitionProblems, readGiven } from '../control/definition.ts'
import { AudienceCreate } from '../control/input.ts'
import type { Problem } from '../control/problem.ts'
import { closed } from '../control/schema.ts'
import { readState, type State } from '../control/state.ts'
import { placedInText } from '../control/text-place.ts'
import type { Audience } from '../domain/configuration.ts'
import { byKey, closedCondition, type Definition, parseDefinition } from '../domain/definition.ts'
import type { JsonObject } from '../domain/message.ts'
import { isTimezone } from '../domain/zone.ts'
import type { Sql } from '../postgres/sql.ts'
import { type Answer, failure, notFound, ok, refusal } from './answer.ts'
import { ofKind } from './audiences.ts'
import { type AdminDeps, adminLimits } from './deps.ts'
import { PreviewView, previewView } from './preview-view.ts'
import { type Route, route } from './route.ts'
import { idParams } from './views.ts'
import { workspaceOf } from './workspaces.ts'

const { workspaceId, where, timezone, includeAnonymous } = AudienceCreate.properties

const sample = Type.Optional(
  Type.Integer({
    minimum: 0,
    maximum: 100,
    description: 'User ids shown at most; 10 when absent.',
  }),
)

const New = closed({ workspaceId, where, timezone, includeAnonymous, sample })
const Edit = closed({ where: Type.Optional(where), timezone, includeAnonymous, sample })

const answers = { 200: { description: 'What it would be.', schema: PreviewView } }

export const previewRoutes = (deps: AdminDeps): readonly Route[] => {
  const gate = openGate({ ...adminLimits, ...deps.limits }.previewsMax)
  return [
    route({
      method: 'POST',
      path: '/admin/v1/audiences/preview',
      operation: 'previewAudience',
      summary: 'How many users a condition would hold for, and some of them; nothing is saved',
      access: 'admin',
      body: New,
      answers,
      handle: async ({ body, signal }) => {
        const state = await readState(deps.pool)
        const workspace = workspaceOf(state, body)
        if ('problems' in workspace) return refusal(workspace.problems)
        const wish = { ...body, workspaceId: workspace.id, current: null }
        return gate(() => answer(deps, { state, wish, signal }))
      },
    }),
    route({
      method: 'POST',
      path: '/admin/v1/audiences/:id/preview',
      operation: 'previewAudienceEdit',
      summary: 'The same for an edit, and who would enter and leave by it; nothing is saved',
      access: 'admin',
      params: idParams,
      body: Edit,
      bodyOptional: true,
      answers,
      handle: async ({ params, body, signal }) => {
        const state = await readState(deps.pool)
        const current = ofKind(state.audiences, 'audience', params.id)
        if (!current) return notFound(`audience ${params.id}`)
        const wish = { ...body, workspaceId: current.workspaceId, current }
        return gate(() => answer(deps, { state, wish, signal }))
      },
    }),
  ]
}

/** Lets so many through at a time. */
const openGate = (max: number) => {
  let running = 0
  return async (work: () => Promise<Answer>): Promise<Answer> => {
    if (running >= max)
      return failure(
        'previews_too_many',
        `${max} previews are running already: ask again in a moment`,
      )
    running++
    return work().finally(() => running--)
  }
}

type Wish = Static<typeof Edit> & {
  readonly workspaceId: number
  readonly current: Audience | null
}

type Asked = { readonly state: State; readonly wish: Wish; readonly signal: AbortSignal }

const answer = async (deps: AdminDeps, { state, wish, signal }: Asked): Promise<Answer> => {
  const read = conditionOf(state, wish)
  if ('problems' in read) return refusal(read.problems)
  const { pool, source, codecs } = deps
  const { current, workspaceId } = wish
  // One snapshot, in which users, leaves and the audience as it is belong together.
  return pool.transaction(
    async (sql) => {
      const at = Math.max(deps.clock().getTime(), await readFolded(sql))
      const asking = {
        ...{ sql, workspaceId, at, signal, limits: previewLimits },
        log: source && codecs ? { source, codec: codecs.call } : null,
        sampleMax: wish.sample ?? 10,
      }
      const worked = current && (await workedOut(sql, current.id))
      const found = await tried(asking, read.definition, current && { id: current.id, worked })
      if (found !== null) return ok(previewView(found, { at, isEdit: current !== null }))
      return failure(
        'not_ready',
        'past calls would have to be read for it, and this process has no log to read',
      )
    },
    { isolation: 'repeatable read' },
  )
}

type Tried = Omit<Parameters<typeof preview>[0], 'condition' | 'current'>
type Current = { readonly id: number; readonly worked: Definition | null }

/** An audience of accounts is compared with one of accounts, and one of users with one of users. */
const tried = (
  asking: Tried,
  definition: Definition,
  current: Current | null,
): Promise<Preview | null> => {
  if (definition.type === 'value') throw new RangeError('a computed trait cannot be tried')
  if (definition.type === 'account') {
    const before = current?.worked?.type === 'account' ? current.worked.users : null
    const compared = current && { id: current.id, condition: before }
    return previewAccounts({ ...asking, condition: definition.users, current: compared })
  }
  const before = current?.worked?.type === 'membership' ? current.worked.condition : null
  const compared = current && { id: current.id, condition: before }
  return preview({ ...asking, condition: definition.condition, current: compared })
}

/** `null` while it is not: then what was last known of each user stands for it. */
const workedOut = async (sql: Sql, audienceId: number): Promise<Definition | null> => {
  const worked = await readWorked(sql, audienceId)
  if (worked?.state !== 'live') return null
  const parsed = parseDefinition({ kind: 'audience', ...worked })
  return parsed.ok ? parsed.definition : null
}

/** As it would be worked out, or what saving it would be refused for. */
const conditionOf = (
  { audiences }: State,
  wish: Wish,
): { readonly definition: Definition } | { readonly problems: readonly Problem[] } => {
  const { current, workspaceId } = wish
  const timezone = wish.timezone ?? current?.timezone ?? audienceDefaults.timezone
  const given = wish.where ?? (current?.condition as JsonObject)
  if (!isTimezone(timezone))
    return {
      problems: [
        {
          code: 'timezone_unknown',
          path: '/timezone',
          message: `"${timezone}" is no time zone: give an IANA name such as "Europe/Dublin"`,
        },
      ],
    }
  const read = readGiven({ kind: 'audience', given, timezone, path: '/where' })
  if ('problems' in read) return read
  const wanted = {
    ...{ kind: 'audience' as const, workspaceId, timezone, condition: read.json },
    key: current?.key ?? '',
    includeAnonymous:
      wish.includeAnonymous ?? current?.includeAnonymous ?? audienceDefaults.includeAnonymous,
  }
  const others = [...audiences.values()].filter((each) => each.workspaceId === workspaceId)
  const problems = [
    ...definitionProblems(wanted, others, '/where'),
    ...scopeProblems({ kind: 'audience', where: read.json }, current, ''),
  ]
  if (problems.length > 0) return { problems: placedInText(problems, given, '/where') }
  const expanded = closedCondition(wanted, byKey(others, workspaceId))
  const parsed = expanded.ok
    ? parseDefinition({ kind: 'audience', condition: expanded.json, timezone })
    : expanded
  if (parsed.ok && 'definition' in parsed) return parsed
  throw new RangeError('a condition without problems cannot be read')
}

// Saving an audience: its condition, the property key fixed at creation, and who is told.
import { isAboutAccounts } from '../domain/condition/users.ts'
import type { Audience } from '../domain/configuration.ts'
import type { JsonObject } from '../domain/message.ts'
import { propertyKey } from '../domain/property-key.ts'
import { isTimezone } from '../domain/zone.ts'
import { insertVersion } from './audience-version.ts'
import { changesBetween, type Fields, shownFields } from './changes.ts'
import { definitionProblems, referrersOf } from './definition.ts'
import { formatDuration, parseDuration } from './duration.ts'
import { audit, type Editing, refused, type Saved } from './edit.ts'
import { nameProblems } from './name.ts'
import { at, type Problem } from './problem.ts'
import type { State } from './state.ts'
import { deleteAudience, insertAudience, updateAudience } from './store.ts'

export const audienceDefaults = {
  kind: 'audience',
  syncEvery: '2h30m',
  timezone: 'UTC',
  includeAnonymous: true,
  retractOnDelete: false,
  entryEvents: false,
} as const

/** What an audience may be told beside its condition. */
export type AudienceOptions = Pick<
  Audience,
  'timezone' | 'includeAnonymous' | 'retractOnDelete' | 'entryEvents'
>

export const optionsOfAudience = ({
  timezone,
  includeAnonymous,
  retractOnDelete,
  entryEvents,
}: AudienceOptions): AudienceOptions => ({
  timezone,
  includeAnonymous,
  retractOnDelete,
  entryEvents,
})

export type AudienceDraft = AudienceOptions & {
  /** Where it is not said, the condition says it. */
  readonly scope?: Audience['scope'] | undefined
  readonly kind: Audience['kind']
  readonly workspaceId: number
  readonly name: string
  readonly where: JsonObject
  readonly destinationIds: readonly number[]
  readonly syncEvery: string
}

type Wish = {
  readonly draft: AudienceDraft
  /** What is changed; `null` creates. */
  readonly current: Audience | null
  readonly path: string
}

export const saveAudience = async (editing: Editing, wish: Wish): Promise<Saved<Audience>> => {
  const { state, tx } = editing
  const { draft, current } = wish
  const problems = problemsOf(state, wish)
  if (problems.length > 0) return refused(problems)
  const wanted = {
    kind: current?.kind ?? draft.kind,
    scope: scopeOf(draft.where),
    workspaceId: draft.workspaceId,
    name: draft.name,
    key: current?.key ?? propertyKey(draft.name) ?? '',
    condition: draft.where,
    ...optionsOfAudience(draft),
    destinationIds: [...new Set(draft.destinationIds)].sort((a, b) => a - b),
    syncEveryMs: parseDuration(draft.syncEvery) ?? 0,
  }
  const changes = changesBetween(
    current && fieldsOf(current, state),
    fieldsOf({ ...wanted, id: 0 }, state),
  )
  if (current && Object.keys(changes).length === 0)
    return { action: 'unchanged', entity: current, changes }
  const entity = { ...wanted, id: current?.id ?? (await insertAudience(tx, wanted)) }
  if (current) await updateAudience(tx, entity)
  state.audiences.set(entity.id, entity)
  state.audienceKeys.add(`${entity.workspaceId}:${entity.key}`)
  const action = current ? 'changed' : 'created'
  const definition = shownFields(fieldsOf(entity, state))
  await insertVersion(tx, { audience: entity, actor: editing.actor, definition, changes })
  await audit(editing, {
    action,
    kind: entity.kind,
    entityId: entity.id,
    name: entity.name,
    changes,
  })
  return { action, entity, changes }
}

const fieldsOf = (audience: Audience, state: State): Fields => ({
  name: { is: audience.name },
  key: { is: audience.key },
  ...(audience.scope === 'account' ? { scope: { is: audience.scope } } : {}),
  where: { is: audience.condition },
  timezone: { is: audience.timezone },
  includeAnonymous: { is: audience.includeAnonymous },
  retractOnDelete: { is: audience.retractOnDelete },
  entryEvents: { is: audience.entryEvents },
  destinations: {
    is: [...audience.destinationIds]
      .sort((a, b) => a - b)
      .map((id) => state.destinations.get(id)?.name ?? id),
  },
  syncEvery: { is: formatDuration(audience.syncEveryMs) },
})

const problemsOf = (state: State, { draft, current, path }: Wish): readonly Problem[] => {
  const others = [...state.audiences.values()].filter(
    ({ workspaceId }) => workspaceId === draft.workspaceId,
  )
  const names = nameProblems(
    { name: draft.name, id: current?.id ?? null, others, kind: nounOf(draft) },
    path,
  )
  return [
    ...names,
    ...(current || names.length > 0 ? [] : keyProblems(state, draft, at(path, 'name'))),
    ...destinationProblems(state, draft, at(path, 'destinationIds')),
    ...timezoneProblems(draft, at(path, 'timezone')),
    ...definitionProblems(
      { ...draft, condition: draft.where, key: current?.key ?? propertyKey(draft.name) ?? '' },
      others,
      at(path, draft.kind === 'trait' ? 'measure' : 'where'),
    ),
    ...scopeProblems(draft, current, path),
    ...syncEveryProblems(draft, at(path, 'syncEvery')),
  ]
}

const scopeOf = (where: JsonObject): Audience['scope'] =>
  isAboutAccounts(where) ? 'account' : 'user'

/** A user's bits of the one kind say nothing of the other: what was a user's stays one. */
export const scopeProblems = (
  { scope, where, kind }: Pick<AudienceDraft, 'scope' | 'where' | 'kind'>,
  current: Audience | null,
  path: string,
): readonly Problem[] => {
  const said = scopeOf(where)
  const field = at(path, kind === 'trait' ? 'measure' : 'where')
  const problem = (message: string) => [{ code: 'scope_invalid' as const, path: field, message }]
  if (current !== null && current.scope !== said)
    return problem(
      `its condition is about ${nameOfScope[current.scope]}, and has to stay so: create another audience for ${nameOfScope[said]}`,
    )
  if (scope === undefined || scope === said) return []
  return problem(
    scope === 'account'
      ? 'an audience with scope "account" has a condition {"users": {"quantifier": "any", "all" or "none", "where": …}}'
      : 'a condition of "users" is about accounts: its scope is "account"',
  )
}

const nameOfScope = { user: 'users', account: 'accounts' } as const

/** The two share their names and keys: they are properties of the same users. */
const nounOf = ({ kind }: Pick<Audience, 'kind'>): string =>
  kind === 'trait' ? 'computed trait' : 'audience'

const keyProblems = (
  state: State,
  { name, workspaceId }: AudienceDraft,
  path: string,
): readonly Problem[] => {
  const key = propertyKey(name)
  if (key === null)
    return [
      {
        code: 'key_empty',
        path,
        message: `nothing of "${name}" can be a property key: it needs a letter or a digit`,
      },
    ]
  if (!state.audienceKeys.has(`${workspaceId}:${key}`)) return []
  const holder = [...state.audiences.values()].find(
    (audience) => audience.workspaceId === workspaceId && audience.key === key,
  )
  return [
    {
      code: 'key_taken',
      path,
      message: holder
        ? `the property key "${key}" belongs to the ${nounOf(holder)} "${holder.name}"`
        : `the property key "${key}" belonged to a deleted audience, and destinations may still hold it`,
    },
  ]
}

const destinationProblems = (
  state: State,
  { destinationIds, workspaceId }: AudienceDraft,
  path: string,
): readonly Problem[] =>
  destinationIds.flatMap((id, index) =>
    state.destinations.get(id)?.workspaceId === workspaceId
      ? []
      : [
          {
            code: 'destination_unknown' as const,
            path: at(path, index),
            message: `the workspace has no destination ${id}`,
          },
        ],
  )

const syncEveryMsMin = 60_000
const syncEveryMsMax = 3_650 * 86_400_000

const syncEveryProblems = ({ syncEvery }: AudienceDraft, path: string): readonly Problem[] => {
  const ms = parseDuration(syncEvery)
  return ms !== null && ms >= syncEveryMsMin && ms <= syncEveryMsMax
    ? []
    : [
        {
          code: 'sync_every_invalid',
          path,
          message: `"${syncEvery}" is no duration like "2h30m" from 1 minute to 3650 days`,
        },
      ]
}

export const removeAudience = async (
  editing: Editing,
  audience: Audience,
): Promise<readonly Problem[]> => {
  const referrers = referrersOf(audience, [...editing.state.audiences.values()])
  if (referrers.length > 0)
    return [
      {
        code: 'audience_referenced',
        path: '',
        message: `${referrers.map(({ name }) => `"${name}"`).join(', ')} refers to it: change that first`,
      },
    ]
  await deleteAudience(editing.tx, audience)
  const { id: entityId, name } = audience
  await audit(editing, { action: 'deleted', kind: audience.kind, entityId, name, changes: {} })
  return []
}

const timezoneProblems = ({ timezone }: AudienceDraft, path: string): readonly Problem[] =>
  isTimezone(timezone)
    ? []
    : [
        {
          code: 'timezone_unknown',
          path,
          message: `"${timezone}" is no time zone: give an IANA name such as "Europe/Dublin"`,
        },
      ]

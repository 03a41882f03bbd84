// Saving a source: its class, and the two keys that authenticate what it sends.
import {
  defaultSourceSettings,
  type Source,
  type SourceClass,
  type SourceSettings,
} from '../domain/configuration.ts'
import type { Json } from '../domain/message.ts'
import type { TrackingPlan } from '../domain/tracking-plan.ts'
import { changesBetween, type Fields, hidden } from './changes.ts'
import { hashOf, newSecretKey, newWriteKey } from './credential.ts'
import { audit, type Editing, refused, type Saved } from './edit.ts'
import { nameProblems } from './name.ts'
import { at, type Problem } from './problem.ts'
import { settingsProblems } from './source-settings.ts'
import type { State } from './state.ts'
import { deleteSource, insertSource, updateSource } from './store.ts'

export type SourceDraft = {
  readonly workspaceId: number
  readonly name: string
  readonly class: SourceClass
  readonly enabled: boolean
  /** Those given change, the others are kept. */
  readonly settings?: Partial<SourceSettings> | undefined
  /** Absent: kept, or generated when the source is new. */
  readonly writeKey?: string | undefined
  readonly secretKey?: string | undefined
}

type Wish = {
  readonly draft: SourceDraft
  /** What is changed; `null` creates. */
  readonly current: Source | null
  readonly path: string
}

/** `secretKey` only when it was made or set just now: it cannot be read again. */
export type SavedSource = Source & { readonly secretKey?: string }

export const saveSource = async (editing: Editing, wish: Wish): Promise<Saved<SavedSource>> => {
  const { state, tx } = editing
  const { draft, current } = wish
  const secretKey = draft.secretKey ?? (current ? undefined : newSecretKey())
  const wanted = {
    workspaceId: draft.workspaceId,
    name: draft.name,
    class: draft.class,
    writeKey: draft.writeKey ?? current?.writeKey ?? newWriteKey(),
    enabled: draft.enabled,
    settings: { ...(current?.settings ?? defaultSourceSettings), ...draft.settings },
    secretKeyHash:
      secretKey === undefined
        ? (current as Source).secretKeyHash
        : hashOf(secretKey).toString('hex'),
  }
  const problems = [
    ...problemsOf(state, { ...wish, wanted }),
    ...(await settingsProblems(
      draft.settings ?? {},
      current?.settings ?? defaultSourceSettings,
      wish.path,
    )),
  ]
  if (problems.length > 0) return refused(problems)
  const changes = changesBetween(
    current && fieldsOf(current, wanted.settings.trackingPlan),
    fieldsOf(wanted, current?.settings.trackingPlan ?? null),
  )
  if (current && Object.keys(changes).length === 0)
    return { action: 'unchanged', entity: current, changes }
  const id = current?.id ?? (await insertSource(tx, wanted))
  if (current) await updateSource(tx, id, wanted)
  const entity = { ...wanted, id }
  state.sources.set(id, entity)
  const action = current ? 'changed' : 'created'
  await audit(editing, { action, kind: 'source', entityId: id, name: entity.name, changes })
  return { action, entity: secretKey === undefined ? entity : { ...entity, secretKey }, changes }
}

const fieldsOf = (source: Omit<Source, 'id'>, otherPlan: TrackingPlan | null): Fields => ({
  name: { is: source.name },
  class: { is: source.class },
  writeKey: { is: source.writeKey },
  secretKey: { is: source.secretKeyHash, shown: hidden },
  enabled: { is: source.enabled },
  ...settingFields(source.settings),
  trackingPlan: {
    is: source.settings.trackingPlan,
    shown: differing(source.settings.trackingPlan, otherPlan),
  },
})

const settingFields = (settings: SourceSettings): Fields =>
  Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, { is: value as Json }]))

/** A plan may have a thousand events: only those that the other has not, or not so, are shown. */
const differing = (plan: TrackingPlan | null, other: TrackingPlan | null): Json => {
  if (plan === null || other === null) return plan
  const events = Object.entries(plan.events).filter(
    ([name, schema]) =>
      !Object.hasOwn(other.events, name) ||
      JSON.stringify(other.events[name]) !== JSON.stringify(schema),
  )
  return { ...plan, events: Object.fromEntries(events) }
}

type Wanted = Wish & { readonly wanted: Omit<Source, 'id'> }

const problemsOf = (state: State, { draft, current, path, wanted }: Wanted): readonly Problem[] => {
  const id = current?.id ?? null
  const all = [...state.sources.values()]
  const others = all.filter((other) => other.workspaceId === draft.workspaceId)
  return [
    ...nameProblems({ name: draft.name, id, others, kind: 'source' }, path),
    ...writeKeyProblems(
      { wanted, others: all.filter((other) => other.id !== id) },
      at(path, 'writeKey'),
    ),
    ...(draft.secretKey === undefined
      ? []
      : secretKeyProblems(
          { draft, wanted, others: all.filter((other) => other.id !== id) },
          at(path, 'secretKey'),
        )),
  ]
}

/** What Basic authentication can carry as a user name, and an Authorization header at all. */
const isKey = (text: string): boolean => /^[\x21-\x39\x3b-\x7e]{1,128}$/.test(text)

const keyRule = 'has 1 to 128 printable ASCII characters, no space and no colon'

type Keys = {
  readonly wanted: Omit<Source, 'id'>
  readonly others: readonly Source[]
}

const writeKeyProblems = ({ wanted, others }: Keys, path: string): readonly Problem[] => {
  if (!isKey(wanted.writeKey))
    return [{ code: 'write_key_invalid', path, message: `a write key ${keyRule}` }]
  if (others.some(({ writeKey }) => writeKey === wanted.writeKey))
    return [{ code: 'write_key_taken', path, message: 'another source has this write key' }]
  // A public key that opened somebody's deletions would be a secret given away.
  const hash = hashOf(wanted.writeKey).toString('hex')
  if (wanted.secretKeyHash === hash)
    return [
      { code: 'write_key_invalid', path, message: 'the write key must differ from the secret key' },
    ]
  if (others.some(({ secretKeyHash }) => secretKeyHash === hash))
    return [{ code: 'write_key_taken', path, message: 'another source has this key' }]
  return []
}

const secretKeyProblems = (
  { draft, wanted, others }: Keys & { readonly draft: SourceDraft },
  path: string,
): readonly Problem[] => {
  const secretKey = draft.secretKey ?? ''
  if (!isKey(secretKey))
    return [{ code: 'secret_key_invalid', path, message: `a secret key ${keyRule}` }]
  const isTaken = others.some(
    (other) => other.secretKeyHash === wanted.secretKeyHash || other.writeKey === secretKey,
  )
  return isTaken
    ? [{ code: 'secret_key_taken', path, message: 'another source has this secret key' }]
    : []
}

export const removeSource = async (editing: Editing, source: Source): Promise<void> => {
  await deleteSource(editing.tx, source.id)
  const { id: entityId, name } = source
  await audit(editing, { action: 'deleted', kind: 'source', entityId, name, changes: {} })
}

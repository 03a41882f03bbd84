// Saving a source: its class, and the two keys that authenticate what it sends.
import type { Source, SourceClass } from '../domain/configuration.ts'
import { changesBetween, type Fields, hidden } from './changes.ts'
import { hashOf, newSecretKey, newWriteKey } from './credential.ts'
import { audit, type Editing, refused, type Saved } from './edit.ts'
import { nameProblems } from './name.ts'
import { at, type Problem } from './problem.ts'
import type { State, StoredSource } from './state.ts'
import { deleteSource, insertSource, updateSource } from './store.ts'

export type SourceDraft = {
  readonly workspaceId: number
  readonly name: string
  readonly class: SourceClass
  readonly enabled: boolean
  /** Absent: kept, or generated when the source is new. */
  readonly writeKey?: string | undefined
  readonly secretKey?: string | undefined
}

type Wish = {
  readonly draft: SourceDraft
  /** What is changed; `null` creates. */
  readonly current: StoredSource | null
  readonly path: string
}

/** `secretKey` only when it was made or set just now: it cannot be read again. */
export type SavedSource = StoredSource & { readonly secretKey?: string }

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
    secretKeyHash:
      secretKey === undefined ? (current as StoredSource).secretKeyHash : hashOf(secretKey),
  }
  const problems = problemsOf(state, { ...wish, wanted })
  if (problems.length > 0) return refused(problems)
  const changes = changesBetween(current && fieldsOf(current), fieldsOf(wanted))
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

const fieldsOf = (source: Omit<StoredSource, 'id'>): Fields => ({
  name: { is: source.name },
  class: { is: source.class },
  writeKey: { is: source.writeKey },
  secretKey: { is: source.secretKeyHash.toString('hex'), shown: hidden },
  enabled: { is: source.enabled },
})

type Wanted = Wish & { readonly wanted: Omit<StoredSource, 'id'> }

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
  readonly wanted: Omit<StoredSource, 'id'>
  readonly others: readonly StoredSource[]
}

const writeKeyProblems = ({ wanted, others }: Keys, path: string): readonly Problem[] => {
  if (!isKey(wanted.writeKey))
    return [{ code: 'write_key_invalid', path, message: `a write key ${keyRule}` }]
  if (others.some(({ writeKey }) => writeKey === wanted.writeKey))
    return [{ code: 'write_key_taken', path, message: 'another source has this write key' }]
  // A public key that opened somebody's deletions would be a secret given away.
  const hash = hashOf(wanted.writeKey)
  if (wanted.secretKeyHash.equals(hash))
    return [
      { code: 'write_key_invalid', path, message: 'the write key must differ from the secret key' },
    ]
  if (others.some(({ secretKeyHash }) => secretKeyHash.equals(hash)))
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
    (other) => other.secretKeyHash.equals(wanted.secretKeyHash) || other.writeKey === secretKey,
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

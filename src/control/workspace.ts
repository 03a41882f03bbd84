// Saving a workspace: what groups sources, destinations, audiences and users.
import type { Workspace } from '../domain/configuration.ts'
import { changesBetween, type Fields } from './changes.ts'
import { audit, type Editing, refused, type Saved } from './edit.ts'
import { nameProblems } from './name.ts'
import type { Problem } from './problem.ts'
import { deleteWorkspace, insertWorkspace, updateWorkspace } from './store.ts'

export type WorkspaceDraft = Omit<Workspace, 'id'>

type Wish = {
  readonly draft: WorkspaceDraft
  /** What is changed; `null` creates. */
  readonly current: Workspace | null
  readonly path: string
}

export const saveWorkspace = async (editing: Editing, wish: Wish): Promise<Saved<Workspace>> => {
  const { state, tx } = editing
  const { draft, current } = wish
  const others = state.workspaces.values()
  const problems = nameProblems(
    { name: draft.name, id: current?.id ?? null, others, kind: 'workspace' },
    wish.path,
  )
  if (problems.length > 0) return refused(problems)
  const changes = changesBetween(current && fieldsOf(current), fieldsOf(draft))
  if (current && Object.keys(changes).length === 0)
    return { action: 'unchanged', entity: current, changes }
  const entity = current ? { ...draft, id: current.id } : await insertWorkspace(tx, draft)
  if (current) await updateWorkspace(tx, entity)
  state.workspaces.set(entity.id, entity)
  const action = current ? 'changed' : 'created'
  await audit(editing, {
    action,
    kind: 'workspace',
    entityId: entity.id,
    name: entity.name,
    changes,
  })
  return { action, entity, changes }
}

const fieldsOf = ({ name, regionalAccess, grandfathered }: WorkspaceDraft): Fields => ({
  name: { is: name },
  regionalAccess: { is: regionalAccess },
  grandfathered: { is: grandfathered },
})

/** Only an empty workspace goes: deleting what is inside is said one by one. */
export const removeWorkspace = async (
  editing: Editing,
  workspace: Workspace,
): Promise<readonly Problem[]> => {
  const { sources, destinations, audiences } = editing.state
  const inside = [sources, destinations, audiences].flatMap((entities) =>
    [...entities.values()].filter(({ workspaceId }) => workspaceId === workspace.id),
  )
  if (inside.length > 0)
    return [
      {
        code: 'workspace_not_empty',
        path: '',
        message: `the workspace still holds ${inside.length} sources, destinations or audiences`,
      },
    ]
  await deleteWorkspace(editing.tx, workspace.id)
  const { id: entityId, name } = workspace
  await audit(editing, { action: 'deleted', kind: 'workspace', entityId, name, changes: {} })
  return []
}

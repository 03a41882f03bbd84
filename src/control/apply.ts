// Applying a configuration file: all of it or nothing, in one transaction, and again without effect.
// What the file does not name is left alone: entities absent from it stay, and so do absent fields.
import type { Workspace } from '../domain/configuration.ts'
import type { Pool } from '../postgres/sql.ts'
import { audienceDefaults, optionsOfAudience, saveAudience } from './audience.ts'
import type { Changes } from './audit.ts'
import { readGiven } from './definition.ts'
import { saveDestination } from './destination.ts'
import { destinationDraft, withSecretOnce } from './destination-draft.ts'
import { formatDuration } from './duration.ts'
import { type Editing, type EditOptions, edit, type Saved } from './edit.ts'
import { definitionsOf, type FileDefinition } from './file-definitions.ts'
import type { ConfigurationFile, FileDestination, FileSource, FileWorkspace } from './input.ts'
import { at, type Problem } from './problem.ts'
import { saveSource } from './source.ts'
import { settingsOf } from './source-settings.ts'
import { saveWorkspace } from './workspace.ts'

export type ApplyOptions = EditOptions & { readonly dryRun: boolean }

export type AppliedEntity = {
  readonly action: 'created' | 'changed' | 'unchanged'
  readonly kind: 'workspace' | 'source' | 'destination' | 'audience' | 'trait'
  readonly workspace: string
  readonly name: string
  readonly changes: Changes
  /** Keys made for a new source whose file gave none, and secrets it asked for: shown this once. */
  readonly generated: {
    readonly writeKey?: string
    readonly secretKey?: string
    readonly sharedSecret?: string
  }
}

export type Applied =
  | { readonly ok: true; readonly dryRun: boolean; readonly entities: readonly AppliedEntity[] }
  | { readonly ok: false; readonly problems: readonly Problem[] }

/** Thrown to undo the transaction, never past this file. */
const undone = Symbol('undone')

export const applyFile = async (
  pool: Pool,
  file: ConfigurationFile,
  options: ApplyOptions,
): Promise<Applied> => {
  const problems: Problem[] = []
  const entities: AppliedEntity[] = []
  try {
    await edit(pool, options, async (editing) => {
      const applying = { editing, problems, entities }
      for (const [index, workspace] of file.workspaces.entries())
        await applyWorkspace(applying, workspace, at('/workspaces', index))
      problems.push(...repeatedNames(file.workspaces, '/workspaces'))
      // A dry run does the work and takes it back: its answer is what would really happen.
      if (options.dryRun || problems.length > 0) throw undone
    })
  } catch (error) {
    if (error !== undone) throw error
  }
  if (problems.length > 0) return { ok: false, problems }
  return {
    ok: true,
    dryRun: options.dryRun,
    entities: options.dryRun ? entities.map(withoutKeys) : entities,
  }
}

/** The keys a dry run makes are thrown away with it. */
const withoutKeys = (entity: AppliedEntity): AppliedEntity => ({
  ...entity,
  generated: {},
  changes: Object.fromEntries(
    Object.entries(entity.changes).filter(([field]) => !Object.hasOwn(entity.generated, field)),
  ),
})

type Applying = {
  readonly editing: Editing
  readonly problems: Problem[]
  readonly entities: AppliedEntity[]
}

type Within = Applying & {
  readonly workspace: Workspace
  /** Names the file gives, whether they could be saved or not: a reference to one is no second problem. */
  readonly named: {
    readonly sources: ReadonlySet<string>
    readonly destinations: ReadonlySet<string>
  }
}

const applyWorkspace = async (applying: Applying, file: FileWorkspace, path: string) => {
  const { state } = applying.editing
  const current = byName(state.workspaces.values(), file.name)
  const saved = await saveWorkspace(applying.editing, {
    draft: {
      name: file.name,
      regionalAccess: file.regionalAccess ?? current?.regionalAccess ?? false,
      grandfathered: file.grandfathered ?? current?.grandfathered ?? false,
    },
    current,
    path,
  })
  const { sources = [], destinations = [], audiences = [], traits = [] } = file
  if (!keep(applying, saved, { kind: 'workspace', workspace: file.name, name: file.name })) return
  const named = { sources: namesOf(sources), destinations: namesOf(destinations) }
  const within = { ...applying, workspace: saved.entity, named }
  for (const [index, source] of sources.entries())
    await applySource(within, source, `${path}/sources/${index}`)
  for (const [index, destination] of destinations.entries())
    await applyDestination(within, destination, `${path}/destinations/${index}`)
  for (const { place, ...definition } of definitionsOf(file))
    await applyAudience(within, definition, `${path}/${place}`)
  applying.problems.push(
    ...repeatedNames(sources, `${path}/sources`),
    ...repeatedNames(destinations, `${path}/destinations`),
    ...repeatedNames(audiences, `${path}/audiences`),
    ...repeatedNames(traits, `${path}/traits`),
  )
}

const applySource = async (within: Within, file: FileSource, path: string) => {
  const { editing, workspace } = within
  const current = inWorkspace(editing.state.sources.values(), workspace, file.name)
  const sourceClass = file.class ?? current?.class
  if (sourceClass === undefined) return missing(within, at(path, 'class'))
  const saved = await saveSource(editing, {
    draft: {
      workspaceId: workspace.id,
      name: file.name,
      class: sourceClass,
      enabled: file.enabled ?? current?.enabled ?? true,
      settings: settingsOf(file),
      writeKey: file.writeKey,
      secretKey: file.secretKey,
    },
    current,
    path,
  })
  const about = { kind: 'source', workspace: workspace.name, name: file.name } as const
  if (!keep(within, saved, about) || saved.action !== 'created') return
  const { writeKey, secretKey } = saved.entity
  within.entities[within.entities.length - 1] = {
    ...about,
    action: saved.action,
    changes: saved.changes,
    generated: {
      ...(file.writeKey === undefined ? { writeKey } : {}),
      ...(file.secretKey === undefined && secretKey !== undefined ? { secretKey } : {}),
    },
  }
}

const applyDestination = async (within: Within, file: FileDestination, path: string) => {
  const { editing, workspace, named } = within
  const { state } = editing
  const current = inWorkspace(state.destinations.values(), workspace, file.name)
  const sourceIds = file.sources
    ? idsOf(within, file.sources, {
        kind: 'source',
        path: at(path, 'sources'),
        find: (name) => inWorkspace(state.sources.values(), workspace, name)?.id ?? null,
        named: named.sources,
      })
    : [...(current?.sourceIds ?? [])]
  const { given, generated } = withSecretOnce(file, current)
  const base = { workspaceId: workspace.id, name: file.name, sourceIds }
  const draft = destinationDraft(base, given, current)
  const saved = await saveDestination(editing, { draft, current, path })
  const about = { kind: 'destination', workspace: workspace.name, name: file.name } as const
  keep(within, saved, { ...about, generated })
}

/** An audience, or a computed trait. */
const applyAudience = async (within: Within, file: Omit<FileDefinition, 'place'>, path: string) => {
  const { editing, workspace, named } = within
  const { state } = editing
  const { kind, name, where: given, destinations, syncEvery, ...options } = file
  const ofKind = [...state.audiences.values()].filter((audience) => audience.kind === kind)
  const current = inWorkspace(ofKind, workspace, name)
  const here = at(path, kind === 'trait' ? 'measure' : 'where')
  const written = given ?? current?.condition
  if (written === undefined) return missing(within, here)
  const timezone = file.timezone ?? current?.timezone ?? audienceDefaults.timezone
  const read = readGiven({ kind, given: written, timezone, path: here })
  if ('problems' in read) {
    within.problems.push(...read.problems)
    return
  }
  const destinationIds = destinations
    ? idsOf(within, destinations, {
        kind: 'destination',
        path: at(path, 'destinations'),
        find: (name) => inWorkspace(state.destinations.values(), workspace, name)?.id ?? null,
        named: named.destinations,
      })
    : (current?.destinationIds ?? [])
  const saved = await saveAudience(editing, {
    draft: {
      ...audienceDefaults,
      ...(current === null ? {} : optionsOfAudience(current)),
      ...options,
      ...{ kind, name, destinationIds },
      workspaceId: workspace.id,
      where: read.json,
      syncEvery:
        syncEvery ?? (current ? formatDuration(current.syncEveryMs) : audienceDefaults.syncEvery),
    },
    current,
    path,
  })
  keep(within, saved, { kind, workspace: workspace.name, name })
}

type About = Pick<AppliedEntity, 'kind' | 'workspace' | 'name'> &
  Partial<Pick<AppliedEntity, 'generated'>>
type Kept<T> = Exclude<Saved<T>, { action: 'refused' }>

const keep = <T>(applying: Applying, saved: Saved<T>, about: About): saved is Kept<T> => {
  if (saved.action === 'refused') {
    applying.problems.push(...saved.problems)
    return false
  }
  const { action, changes } = saved
  applying.entities.push({ generated: {}, ...about, action, changes })
  return true
}

const missing = ({ problems }: Applying, path: string): void => {
  const field = path.slice(path.lastIndexOf('/') + 1)
  problems.push({ code: 'field_missing', path, message: `the field "${field}" is required` })
}

type Lookup = {
  readonly kind: 'source' | 'destination'
  readonly path: string
  readonly find: (name: string) => number | null
  readonly named: ReadonlySet<string>
}

const idsOf = (
  { problems }: Applying,
  names: readonly string[],
  lookup: Lookup,
): readonly number[] =>
  names.flatMap((name, index) => {
    const id = lookup.find(name)
    if (id !== null) return [id]
    if (!lookup.named.has(name))
      problems.push({
        code: `${lookup.kind}_unknown`,
        path: at(lookup.path, index),
        message: `there is no ${lookup.kind} named "${name}" in the workspace or the file`,
      })
    return []
  })

type Named = { readonly name: string }

const namesOf = (entities: readonly Named[]): ReadonlySet<string> =>
  new Set(entities.map(({ name }) => name))

const repeatedNames = (entities: readonly Named[], path: string): readonly Problem[] =>
  entities.flatMap(({ name }, index) =>
    entities.findIndex((other) => other.name === name) === index
      ? []
      : [
          {
            code: 'name_taken' as const,
            path: at(at(path, index), 'name'),
            message: `the file names "${name}" twice`,
          },
        ],
  )

const byName = <T extends Named>(entities: Iterable<T>, name: string): T | null => {
  for (const entity of entities) if (entity.name === name) return entity
  return null
}

const inWorkspace = <T extends Named & { readonly workspaceId: number }>(
  entities: Iterable<T>,
  workspace: Workspace,
  name: string,
): T | null => {
  for (const entity of entities)
    if (entity.workspaceId === workspace.id && entity.name === name) return entity
  return null
}

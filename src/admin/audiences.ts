// Routes of audiences and of computed traits: told apart by what is defined, alike in everything else.
import Type, { type Static } from 'typebox'
import {
  audienceDefaults,
  optionsOfAudience,
  removeAudience,
  saveAudience,
} from '../control/audience.ts'
import { readGiven } from '../control/definition.ts'
import { formatDuration } from '../control/duration.ts'
import { edit } from '../control/edit.ts'
import { AudienceCreate, AudiencePatch, TraitCreate, TraitPatch } from '../control/input.ts'
import { readState } from '../control/state.ts'
import { placedInText } from '../control/text-place.ts'
import type { Audience } from '../domain/configuration.ts'
import type { JsonObject } from '../domain/message.ts'
import { created, gone, notFound, ok, refusal } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { loadStandings } from './store.ts'
import { AudienceView, audienceView, idParams, TraitView, traitView } from './views.ts'
import { optionsOf, workspaceOf, workspaceQuery } from './workspaces.ts'

type Kind = Audience['kind']

/** What routes of one kind say and take. */
const shapes = {
  audience: {
    path: '/admin/v1/audiences',
    noun: 'audience',
    name: 'Audience',
    plural: 'audiences',
    counted: 'how many members each has',
    view: AudienceView,
    create: AudienceCreate,
    patch: AudiencePatch,
    defined: 'where',
  },
  trait: {
    path: '/admin/v1/traits',
    noun: 'computed trait',
    name: 'Trait',
    plural: 'traits',
    counted: 'how many users have a value of it',
    view: TraitView,
    create: TraitCreate,
    patch: TraitPatch,
    defined: 'measure',
  },
} as const

export const audienceRoutes = (deps: AdminDeps): readonly Route[] =>
  (['audience', 'trait'] as const).flatMap((kind) => [
    ...readRoutes(deps, kind),
    createRoute(deps, kind),
    changeRoute(deps, kind),
    deleteRoute(deps, kind),
  ])

const oneOf = (kind: Kind) => ({
  description: `The ${shapes[kind].noun}.`,
  schema: shapes[kind].view,
})

const readRoutes = (deps: AdminDeps, kind: Kind): readonly Route[] => {
  const { path, noun, name, plural, counted, view } = shapes[kind]
  return [
    route({
      method: 'GET',
      path,
      operation: `list${name}s`,
      summary: `The ${noun}s of one workspace, or of all, with ${counted}`,
      access: 'viewer',
      query: workspaceQuery,
      answers: {
        200: {
          description: `The ${noun}s.`,
          schema: Type.Object({ [plural]: Type.Array(view) }),
        },
      },
      handle: async ({ query: { workspaceId } }) => {
        const { audiences } = await readState(deps.pool)
        const wanted = [...audiences.values()].filter(
          (audience) =>
            audience.kind === kind &&
            (workspaceId === undefined || audience.workspaceId === workspaceId),
        )
        return ok({ [plural]: await viewsOf(deps, wanted) })
      },
    }),
    route({
      method: 'GET',
      path: `${path}/:id`,
      operation: `get${name}`,
      summary: `One ${noun}, with ${counted}`,
      access: 'viewer',
      params: idParams,
      answers: { 200: oneOf(kind) },
      handle: async ({ params }) => {
        const found = ofKind((await readState(deps.pool)).audiences, kind, params.id)
        if (!found) return notFound(`${noun} ${params.id}`)
        const [view] = await viewsOf(deps, [found])
        return ok(view)
      },
    }),
  ]
}

/** An audience is no computed trait, whatever its id. */
export const ofKind = (
  audiences: ReadonlyMap<number, Audience>,
  kind: Kind,
  id: number,
): Audience | null => {
  const found = audiences.get(id)
  return found?.kind === kind ? found : null
}

type Given = Partial<Static<typeof AudienceCreate> & Static<typeof TraitCreate>>

/** The fields of a request, and the definition as JSON under one name. */
const fieldsOf = (body: object, kind: Kind, current: Audience | null) => {
  const { where, measure, ...fields } = body as Given
  const given = where ?? measure ?? (current?.condition as JsonObject)
  const timezone = fields.timezone ?? current?.timezone ?? audienceDefaults.timezone
  const read = readGiven({ kind, given, timezone, path: `/${shapes[kind].defined}` })
  return 'problems' in read ? read : { fields, json: read.json }
}

const createRoute = (deps: AdminDeps, kind: Kind): Route => {
  const { path, noun, name, create } = shapes[kind]
  return route({
    method: 'POST',
    path,
    operation: `create${name}`,
    summary: `Create a ${noun}; its property key is fixed from then on`.replace('a a', 'an a'),
    access: 'admin',
    body: create,
    answers: { 201: oneOf(kind) },
    handle: async ({ body, actor }) => {
      const saved = await edit(deps.pool, optionsOf(deps, actor), async (editing) => {
        const workspace = workspaceOf(editing.state, body)
        if ('problems' in workspace) return { action: 'refused', ...workspace } as const
        const read = fieldsOf(body, kind, null)
        if ('problems' in read) return { action: 'refused', ...read } as const
        const draft = {
          ...audienceDefaults,
          destinationIds: [],
          ...read.fields,
          kind,
          name: body.name,
          where: read.json,
          workspaceId: workspace.id,
        }
        return saveAudience(editing, { draft, current: null, path: '' })
      })
      if (saved.action === 'refused')
        return refusal(placedInText(saved.problems, (body as Given).where, '/where'))
      const [view] = await viewsOf(deps, [saved.entity])
      return created(view)
    },
  })
}

const changeRoute = (deps: AdminDeps, kind: Kind): Route => {
  const { path, noun, name, patch } = shapes[kind]
  return route({
    method: 'PATCH',
    path: `${path}/:id`,
    operation: `change${name}`,
    summary: 'Change the fields given; a new name does not change the key',
    access: 'admin',
    params: idParams,
    body: patch,
    answers: { 200: oneOf(kind) },
    handle: async ({ params, body, actor }) => {
      const saved = await edit(deps.pool, optionsOf(deps, actor), async (editing) => {
        const current = ofKind(editing.state.audiences, kind, params.id)
        if (!current) return null
        const read = fieldsOf(body, kind, current)
        if ('problems' in read) return { action: 'refused', ...read } as const
        const draft = {
          workspaceId: current.workspaceId,
          name: current.name,
          kind,
          ...optionsOfAudience(current),
          destinationIds: current.destinationIds,
          syncEvery: formatDuration(current.syncEveryMs),
          ...read.fields,
          where: read.json,
        }
        return saveAudience(editing, { draft, current, path: '' })
      })
      if (saved === null) return notFound(`${noun} ${params.id}`)
      if (saved.action === 'refused')
        return refusal(placedInText(saved.problems, (body as Given).where, '/where'))
      const [view] = await viewsOf(deps, [saved.entity])
      return ok(view)
    },
  })
}

const deleteRoute = (deps: AdminDeps, kind: Kind): Route => {
  const { path, noun, name } = shapes[kind]
  return route({
    method: 'DELETE',
    path: `${path}/:id`,
    operation: `delete${name}`,
    summary: `Delete one ${noun}; its property key is not given out again`,
    access: 'admin',
    params: idParams,
    answers: { 204: { description: 'It is gone.' } },
    handle: ({ params, actor }) =>
      edit(deps.pool, optionsOf(deps, actor), async (editing) => {
        const current = ofKind(editing.state.audiences, kind, params.id)
        if (!current) return notFound(`${noun} ${params.id}`)
        const problems = await removeAudience(editing, current)
        return problems.length > 0 ? refusal(problems) : gone
      }),
  })
}

const viewsOf = async (deps: AdminDeps, audiences: readonly Audience[]) => {
  const ids = audiences.map(({ id }) => id)
  const standings = await loadStandings(deps.pool, ids)
  return audiences.map((audience) => {
    const none = { state: 'backfilling', members: 0, anonymousMembers: 0 } as const
    const standing = standings.get(audience.id) ?? none
    return audience.kind === 'trait'
      ? traitView(audience, standing)
      : audienceView(audience, standing)
  })
}

// What commands of jobs for one destination have in common: replays and recoveries are named, listed and steered alike.
import { type Ask, failing, narrowed, print, theOne, workspaceOf } from './client.ts'
import { type Call, text } from './command.ts'

type Named = { readonly id: number; readonly name: string }

const namedOf = async (
  call: Call,
  ask: Ask,
  kind: 'destinations' | 'sources',
): Promise<readonly Named[]> => {
  const path = narrowed(`/admin/v1/${kind}`, await workspaceOf(call, ask))
  return (await ask<Record<typeof kind, readonly Named[]>>({ path }))[kind]
}

export const destinationsOf = (call: Call, ask: Ask) => namedOf(call, ask, 'destinations')
export const sourcesOf = (call: Call, ask: Ask) => namedOf(call, ask, 'sources')

type Job = { readonly id: number; readonly destinationId: number; readonly createdAt: string }
type Cells = readonly string[]

export type Table<J extends Job> = {
  /** The field of the answer, and the path's last part. */
  readonly jobs: string
  /** Between the destination and when it was made. */
  readonly heads: Cells
  readonly cells: (job: J) => Cells
}

export const listJobs = async <J extends Job>(
  call: Call,
  ask: Ask,
  { jobs, heads, cells }: Table<J>,
): Promise<number> => {
  const destinations = await destinationsOf(call, ask)
  const wanted = text(call, 'destination')
  const query =
    wanted === null ? '' : `?destinationId=${theOne(destinations, 'destination', wanted).id}`
  const answer = await ask<Record<string, readonly J[]>>({ path: `/admin/v1/${jobs}${query}` })
  const names = new Map(destinations.map(({ id, name }) => [id, name]))
  print(call, answer, [
    ['ID', 'DESTINATION', ...heads, 'MADE'],
    ...(answer[jobs] ?? []).map((job): [string, ...string[]] => [
      String(job.id),
      names.get(job.destinationId) ?? String(job.destinationId),
      ...cells(job),
      job.createdAt,
    ]),
  ])
  return 0
}

export const steerings = ['pause', 'resume', 'cancel'] as const
export type Steering = (typeof steerings)[number]

export const isSteering = (verb: string | undefined): verb is Steering =>
  steerings.some((known) => known === verb)

export const steerJob = <J extends Job>(ask: Ask, path: string, verb: Steering): Promise<J> =>
  ask<J>({ method: 'POST', path: `${path}/${verb}`, body: {} })

export const idOf = (given: string): number => {
  if (!/^\d{1,15}$/.test(given)) throw failing([`"${given}" is no id`], 2)
  return Number(given)
}

export const numberOf = (given: string, option: string): number => {
  const value = Number(given)
  if (given.trim() === '' || !Number.isFinite(value))
    throw failing([`--${option} takes a number`], 2)
  return value
}

// `millrace pipeline`: shows what happened to calls, step by step and with reasons.
import {
  type Ask,
  adminOptions,
  narrowed,
  print,
  theOne,
  withAdmin,
  workspaceOf,
} from './client.ts'
import { type Call, type Command, text } from './command.ts'

export const command: Command = {
  name: 'pipeline',
  summary: 'show what happened to calls: received, rejected, filtered, appended',
  usage: ['[--hours 24] [--source NAME [--workspace NAME]]'],
  options: {
    ...adminOptions,
    workspace: { type: 'string' },
    source: { type: 'string' },
    hours: { type: 'string' },
  },
  run: (call) =>
    withAdmin(call, async (ask) => {
      const sourceId = await sourceOf(call, ask)
      const hours = text(call, 'hours')
      const query = new URLSearchParams({
        ...(sourceId === null ? {} : { sourceId: String(sourceId) }),
        ...(hours === null ? {} : { hours }),
      })
      const pipeline = await ask<Pipeline>({ path: `/admin/v1/pipeline?${query}` })
      print(call, pipeline, [
        ['SOURCE', 'DESTINATION', 'STEP', 'TYPE', 'REASON', 'CALLS'],
        ...pipeline.counts.map(
          (count) =>
            [
              count.source ?? String(count.sourceId),
              count.destination ??
                (count.destinationId === null ? '' : String(count.destinationId)),
              count.step,
              count.type,
              count.reason ?? '',
              String(count.calls),
            ] as const,
        ),
      ])
      return 0
    }),
}

type Pipeline = {
  readonly counts: readonly {
    readonly sourceId: number
    readonly source: string | null
    readonly destinationId: number | null
    readonly destination: string | null
    readonly step: string
    readonly type: string
    readonly reason: string | null
    readonly calls: number
  }[]
}

type Sources = { readonly sources: readonly { readonly id: number; readonly name: string }[] }

const sourceOf = async (call: Call, ask: Ask): Promise<number | null> => {
  const workspaceId = await workspaceOf(call, ask)
  const name = text(call, 'source')
  if (name === null) return null
  const { sources } = await ask<Sources>({ path: narrowed('/admin/v1/sources', workspaceId) })
  return theOne(sources, 'source', name).id
}

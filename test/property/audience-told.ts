// What a line tells destinations, as "key, user id, value".
import { openCodecs } from '../../src/log/avro.ts'
import type { Rig } from '../project/rig.ts'
import type { Json } from '../support/language.ts'

export const codecs = await openCodecs({})

export type Told = { readonly key: string; readonly userId: string; readonly value: Json }

export const nameOf = ({ key, userId }: Told) => `${key} ${userId}`

/** The last of each, where it is another than was known before. */
export const cameTo = (
  told: readonly Told[],
  known: (it: Told) => Json | undefined,
): readonly Told[] => {
  const last = new Map(told.map((it) => [nameOf(it), it]))
  return [...last.values()].filter((it) => {
    const nothing = it.key.startsWith('t') ? null : false
    return JSON.stringify(it.value) !== JSON.stringify(known(it) ?? nothing)
  })
}

export const lineOf = ({ key, userId, value }: Told) => line(key, userId, value)

export const line = (of: string | number, userId: string | null, value: Json) =>
  `${of} ${userId} ${JSON.stringify(value)}`

/** What was said since it was last asked: "key, user id, value", sorted. */
export const outboundOf = (rig: Rig) => {
  const source = rig.log.source()
  let from = 0n
  return async (): Promise<readonly Told[]> => {
    const until = (await source.bounds('outbound'))[0]?.end ?? 0n
    const found: Told[] = []
    for await (const { entries } of source.read({ topic: 'outbound', partition: 0, from, until }))
      for (const { body } of await codecs.outbound.decode(entries.map(({ value }) => value))) {
        // A notice of a deletion has none.
        const { userId, traits = {} } = JSON.parse(Buffer.from(body).toString()) as {
          userId: string
          traits?: Record<string, Json>
        }
        for (const [key, value] of Object.entries(traits)) found.push({ key, userId, value })
      }
    from = until
    return found
  }
}

// The audiences and computed traits of a file, in an order in which they can be saved.
import { referencesOf } from '../domain/condition/expand.ts'
import type { Audience } from '../domain/configuration.ts'
import { propertyKey } from '../domain/property-key.ts'
import { readGiven } from './definition.ts'
import type { FileAudience, FileWorkspace } from './input.ts'

export type FileDefinition = Omit<FileAudience, 'where'> &
  Pick<Audience, 'kind'> & {
    readonly where?: FileAudience['where'] | undefined
    /** Where in the file's workspace it stands. */
    readonly place: string
  }

/** What others refer to comes before them. A circle stays as it stands: saving it says what is wrong. */
export const definitionsOf = ({
  audiences = [],
  traits = [],
}: FileWorkspace): readonly FileDefinition[] => {
  const all = [
    ...audiences.map(
      (it, at): FileDefinition => ({ ...it, kind: 'audience', place: `audiences/${at}` }),
    ),
    ...traits.map(
      ({ measure: where, ...it }, at): FileDefinition => ({
        ...{ ...it, where, kind: 'trait' },
        place: `traits/${at}`,
      }),
    ),
  ]
  const byKey = new Map(all.map((it) => [`${it.kind} ${propertyKey(it.name)}`, it]))
  const ordered = new Set<FileDefinition>()
  const entered = new Set<FileDefinition>()
  const add = (definition: FileDefinition) => {
    if (entered.has(definition)) return
    entered.add(definition)
    for (const key of referredBy(definition)) {
      const other = byKey.get(key)
      if (other !== undefined) add(other)
    }
    ordered.add(definition)
  }
  for (const definition of all) add(definition)
  return [...ordered]
}

const referredBy = ({ kind, where }: FileDefinition): readonly string[] => {
  if (where === undefined) return []
  const read = readGiven({ kind, given: where, timezone: 'UTC', path: '' })
  // What cannot be read is refused where it is saved.
  if ('problems' in read) return []
  return referencesOf(read.json).map(
    ({ type, key }) => `${type === 'computed' ? 'trait' : 'audience'} ${key}`,
  )
}

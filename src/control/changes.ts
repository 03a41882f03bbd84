// The difference between an entity before and after, fit to be shown: secrets say only that they changed.
import type { Json } from '../domain/message.ts'
import type { Changes } from './audit.ts'

/** `shown` stands in for values that hold secrets; absent, the value itself is shown. */
export type Field = { readonly is: unknown; readonly shown?: Json }
export type Fields = Readonly<Record<string, Field>>

export const hidden = '(hidden)'

export const hideValues = (values: Readonly<Record<string, unknown>>): Record<string, string> =>
  Object.fromEntries(Object.keys(values).map((name) => [name, hidden]))

/** `null` before: created. An empty answer: nothing differs. */
export const changesBetween = (before: Fields | null, after: Fields): Changes =>
  Object.fromEntries(
    Object.entries(after).flatMap(([name, field]) => {
      const old = before?.[name]
      if (old && JSON.stringify(old.is) === JSON.stringify(field.is)) return []
      return [[name, old ? { from: shownOf(old), to: shownOf(field) } : { to: shownOf(field) }]]
    }),
  )

/** All of it, as it may be shown. */
export const shownFields = (fields: Fields): Readonly<Record<string, Json>> =>
  Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, shownOf(field)]))

const shownOf = (field: Field): Json =>
  field.shown === undefined ? (field.is as Json) : field.shown

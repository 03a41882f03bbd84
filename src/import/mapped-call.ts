// Makes a call of one row, as its mapping says; an empty cell says nothing.
import type { Json, JsonObject } from '../domain/message.ts'
import type { Mapping, Path } from './mapping.ts'

type Made = { readonly call: JsonObject } | { readonly problem: string }

type Building = { [key: string]: Json | Building }

export const callOfRow = (row: readonly string[], { constants, mapped }: Mapping): Made => {
  const call: Building = {}
  for (const { path, value } of constants) put(call, path, value)
  for (const { column, path, convert } of mapped) {
    const text = row[column] ?? ''
    if (text === '') continue
    const value = convert.read(text)
    if (value === undefined)
      return {
        problem: `the value for ${path.join('.')}, in column ${column + 1}, is not ${convert.expected}`,
      }
    put(call, path, value)
  }
  return { call: call as JsonObject }
}

/** Steps are never `__proto__`: no mapping with one is taken. */
const put = (call: Building, path: Path, value: Json): void => {
  let at = call
  for (const step of path.slice(0, -1)) {
    at[step] ??= {}
    at = at[step] as Building
  }
  at[path.at(-1) as string] = value
}

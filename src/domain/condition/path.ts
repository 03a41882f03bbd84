// Paths into JSON: keys joined by dots, or a list of keys where a key holds a dot itself.
import type { Json } from '../message.ts'

/** Object keys to walk; every key is taken literally, dots included, but for `anyElement`. */
export type Path = readonly string[]

/** Stands for each element of a list. */
export const anyElement = '[*]'

/** "items[*].sku" or ["items", "[*]", "sku"]; `null` for what is no path. */
export const readPath = (written: Json | undefined): Path | null => {
  const keys = typeof written === 'string' ? keysOf(written) : written
  const sound =
    Array.isArray(keys) &&
    keys.length > 0 &&
    keys[0] !== anyElement &&
    keys.every((key: Json) => typeof key === 'string' && key !== '')
  return sound ? (keys as Path) : null
}

const keysOf = (text: string): readonly string[] =>
  text.split('.').flatMap((part) => {
    let key = part
    const elements: string[] = []
    while (key.length > anyElement.length && key.endsWith(anyElement)) {
      key = key.slice(0, -anyElement.length)
      elements.push(anyElement)
    }
    return [key, ...elements]
  })

/** The shortest form `readPath` reads back to the same keys. */
export const writePath = (path: Path): string | readonly string[] => {
  const text = path.join('.').replaceAll(`.${anyElement}`, anyElement)
  const back = readPath(text)
  return back?.length === path.length && back.every((key, at) => key === path[at]) ? text : path
}

export const valueAt = (root: Json | undefined, path: Path): Json | undefined => {
  let value = root
  for (const key of path) value = under(value, key)
  return value
}

/** What is found at a path through lists: missing ones left out. */
export const valuesAt = (root: Json | undefined, path: Path): readonly Json[] => {
  let values: readonly (Json | undefined)[] = [root]
  for (const key of path)
    values =
      key === anyElement
        ? values.flatMap((value) => (Array.isArray(value) ? (value as readonly Json[]) : []))
        : values.map((value) => under(value, key))
  return values.filter((value) => value !== undefined && value !== null) as readonly Json[]
}

const under = (value: Json | undefined, key: string): Json | undefined => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  if (!Object.hasOwn(value, key)) return undefined
  return (value as { readonly [key: string]: Json })[key]
}

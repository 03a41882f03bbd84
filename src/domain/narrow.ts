// Keeps a call from being too wide: counts the properties it holds at any depth, and drops those beyond the limit.
import { isObject, type Json, type JsonObject } from './message.ts'

/** In which properties are counted, and in this order dropped. */
const maps = ['properties', 'traits', 'context'] as const
/** Directly in `context` these are set or gone by on the way: they are neither counted nor dropped. */
const ours: ReadonlySet<string> = new Set(['direct', 'ignoreSentAt', 'ip', 'library', 'userAgent'])

/** No property takes less JSON: a call below so many bytes for each that is allowed cannot be too wide. */
export const propertyBytesMin = 5

type Body = Record<string, Json | undefined>
type Budget = { left: number }

/** Replaces the maps that hold too much by copies that do not; says whether there were any. */
export const narrow = (body: Body, propertiesMax: number): boolean => {
  const count = { left: propertiesMax }
  for (const map of maps) counted(body[map], count, map === 'context')
  if (count.left >= 0) return false
  const budget = { left: propertiesMax }
  for (const map of maps) {
    const value = body[map]
    if (isObject(value)) body[map] = narrowedMap(value, budget, map === 'context')
  }
  return true
}

const counted = (value: Json | undefined, count: Budget, isContext = false): void => {
  if (typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    for (const item of value) counted(item, count)
    return
  }
  const map = value as JsonObject
  for (const key in map) {
    if (!isContext || !ours.has(key)) count.left -= 1
    counted(map[key], count)
  }
}

const narrowed = (value: Json, budget: Budget): Json => {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => narrowed(item, budget))
  return narrowedMap(value as JsonObject, budget)
}

const narrowedMap = (map: JsonObject, budget: Budget, isContext = false): JsonObject => {
  const kept: Record<string, Json> = {}
  for (const [key, value] of Object.entries(map)) {
    if (!isContext || !ours.has(key)) {
      if (budget.left <= 0) continue
      budget.left -= 1
    }
    kept[key] = narrowed(value, budget)
  }
  return kept
}

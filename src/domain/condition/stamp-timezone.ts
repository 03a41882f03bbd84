// A condition moved into another keeps its time zone: every place that would take that of the whole names it.
import type { Json, JsonObject } from '../message.ts'
import { dateOperators, spanOperators } from './date.ts'

const datedOperators: readonly Json[] = [...dateOperators, ...spanOperators]

/** Of a condition or measure that is sound. */
export const stampTimezone = (json: JsonObject, timezone: string): JsonObject =>
  stamp(json, timezone) as JsonObject

const stamp = (value: Json, timezone: string): Json => {
  if (Array.isArray(value)) return value.map((each: Json) => stamp(each, timezone))
  if (typeof value !== 'object' || value === null) return value
  const node = value as JsonObject
  const stamped: Record<string, Json> = {}
  for (const [key, child] of Object.entries(node))
    stamped[key] = key === 'value' ? child : stampChild(key, child, timezone)
  return takesTimezone(node) ? { timezone, ...stamped } : stamped
}

const stampChild = (key: string, child: Json, timezone: string): Json =>
  key === 'distinct_days' && typeof child === 'object'
    ? { timezone, ...(stamp(child, timezone) as JsonObject) }
    : stamp(child, timezone)

const takesTimezone = (node: JsonObject): boolean =>
  Object.hasOwn(node, 'calendar_days') ||
  Object.hasOwn(node, 'after') ||
  Object.hasOwn(node, 'before') ||
  datedOperators.includes(node['op'] ?? null)

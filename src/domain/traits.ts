// Traits of a user: the last writer wins for each top-level key, whatever order writes arrive in.
import type { Json, JsonObject } from './message.ts'

/** When something was said: ordered by effective time, then receipt, then message id. */
export type Stamp = { readonly te: number; readonly r: number; readonly id: string }

/** `null` marks a deleted trait, kept so that an older write cannot bring it back. */
export type Trait = { readonly value: Json; readonly stamp: Stamp }

export type Traits = ReadonlyMap<string, Trait>

export const isNewer = (left: Stamp, right: Stamp): boolean => {
  if (left.te !== right.te) return left.te > right.te
  return left.r === right.r ? left.id > right.id : left.r > right.r
}

/** The same map when nothing was newer. */
export const writeTraits = (traits: Traits, written: JsonObject, stamp: Stamp): Traits => {
  const entries = Object.entries(written).filter(([key]) => {
    const held = traits.get(key)
    return held === undefined || isNewer(stamp, held.stamp)
  })
  if (entries.length === 0) return traits
  return new Map([...traits, ...entries.map(([key, value]) => [key, { value, stamp }] as const)])
}

export const combineTraits = (left: Traits, right: Traits): Traits => {
  const combined = new Map(left)
  for (const [key, trait] of right) {
    const held = combined.get(key)
    if (held === undefined || isNewer(trait.stamp, held.stamp)) combined.set(key, trait)
  }
  return combined
}

/** As conditions see them. */
export const traitValues = (traits: Traits): JsonObject =>
  Object.fromEntries(
    [...traits].filter(([, { value }]) => value !== null).map(([key, { value }]) => [key, value]),
  )

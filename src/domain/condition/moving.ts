// Filters that compare a property with a trait: what they say of an event moves with the user's traits.
import type { Json } from '../message.ts'
import type { Filter } from './condition.ts'
import type { Path } from './path.ts'
import { scalarOf } from './summary/scalar.ts'
import { compare, passes, type Seen, type Test, valueAt } from './value.ts'

/** A filter in two: an event passes it if it passes both; `null` for everything passes. */
export type Split = {
  /** Says the same of an event whenever it is asked. */
  readonly fixed: Filter | null
  /** Asks for traits. */
  readonly moving: Filter | null
}

export const splitFilter = (filter: Filter | null): Split => {
  if (filter === null || !moves(filter)) return { fixed: filter, moving: null }
  if (filter.type !== 'all') return { fixed: null, moving: filter }
  const parts = filter.of.map(splitFilter)
  return {
    fixed: allOf(parts.map(({ fixed }) => fixed)),
    moving: allOf(parts.map(({ moving }) => moving)),
  }
}

const allOf = (filters: readonly (Filter | null)[]): Filter | null => {
  const of = filters.filter((filter) => filter !== null)
  return of.length > 1 ? { type: 'all', of } : (of[0] ?? null)
}

const refers = ({ comparison }: Test): boolean => 'ref' in comparison

export const moves = (filter: Filter): boolean => {
  switch (filter.type) {
    case 'all':
    case 'any':
      return filter.of.some(moves)
    case 'not':
      return moves(filter.of)
    case 'prop':
      return refers(filter.test)
  }
}

/** Of a list or an object, which equals nothing: just that there was one. */
const composite: Json = []

/** Where the traits stand that are asked. */
export const traitsAsked = (filter: Filter): readonly Path[] =>
  testsOf(filter).flatMap(({ comparison }) =>
    'ref' in comparison && comparison.ref.type === 'trait' ? [comparison.ref.path] : [],
  )

/** All that the filter must know of an event, the same text for events it cannot tell apart. */
export const keptText = (filter: Filter, properties: Json | undefined): string =>
  JSON.stringify(testsOf(filter).map((test) => keptOf(test, properties)))

/** Whether an event of which so much is kept passes, as the traits are now. */
export const passesKept = (filter: Filter, text: string, traits: Json): boolean => {
  const kept = JSON.parse(text) as readonly Json[]
  let next = 0
  const traitOf: Seen['ref'] = (ref) =>
    ref.type === 'trait' ? (scalarOf(valueAt(traits, ref.path)) ?? undefined) : undefined
  const seen: Seen = { at: 0, ref: traitOf }
  const ask = (part: Filter): boolean => {
    switch (part.type) {
      // Each part is asked, so that the next one finds its own place.
      case 'all':
        return part.of.map(ask).every(Boolean)
      case 'any':
        return part.of.map(ask).some(Boolean)
      case 'not':
        return !ask(part.of)
      case 'prop':
        return askKept(part.test, kept[next++] as Json, seen)
    }
  }
  return ask(filter)
}

const testsOf = (filter: Filter): readonly Test[] => {
  switch (filter.type) {
    case 'all':
    case 'any':
      return filter.of.flatMap(testsOf)
    case 'not':
      return testsOf(filter.of)
    case 'prop':
      return [filter.test]
  }
}

const nothingSeen: Seen = { at: 0, ref: () => undefined }

/** What was found; where no trait is asked, what the comparison said of it. */
const keptOf = (test: Test, properties: Json | undefined): Json => {
  if (!refers(test)) return passes(test, properties, nothingSeen)
  const found = valueAt(properties, test.path)
  return found === undefined || found === null ? null : (scalarOf(found) ?? composite)
}

const askKept = ({ comparison }: Test, kept: Json, seen: Seen): boolean =>
  'ref' in comparison ? compare(comparison, kept, seen) : kept === true

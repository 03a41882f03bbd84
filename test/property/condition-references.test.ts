import fc from 'fast-check'
import { expect, test } from 'vitest'
import { expandReferences, type References } from '../../src/domain/condition/expand.ts'
import { parseCondition } from '../../src/domain/condition/parse.ts'
import type { JsonObject } from '../../src/domain/message.ts'

const names = ['a', 'b', 'c', 'd', 'e', 'f'] as const

/** Which audience refers to which: six of them, few references each, so that half of the graphs are cyclic. */
const graph = fc.array(fc.subarray([...names], { maxLength: 2 }), {
  minLength: names.length,
  maxLength: names.length,
})

type Graph = readonly (readonly string[])[]

const below = (edges: Graph, key: string): readonly string[] =>
  edges[(names as readonly string[]).indexOf(key)] ?? []

/** The naive way: walk on while nothing repeats on the way. */
const reachesCycle = (edges: Graph, key: string, way: readonly string[]): boolean =>
  way.includes(key) || below(edges, key).some((next) => reachesCycle(edges, next, [...way, key]))

const conditionOf = (edges: Graph, key: string): JsonObject => ({
  any: [
    { trait: key, op: 'exists' },
    { not: { all: [{ trait: 'x', op: 'exists' }, ...references(edges, key)] } },
  ],
})

const references = (edges: Graph, key: string): readonly JsonObject[] =>
  below(edges, key).map((audience, at) => ({ audience, in: at % 2 === 0 }))

const lookup = (edges: Graph): References => ({
  audience: (key) => ({
    where: conditionOf(edges, key),
    timezone: 'UTC',
    includeAnonymous: key !== 'b',
  }),
  computed: () => null,
})

test('P13: a cycle is refused exactly where a walk through all references finds one, and is named', () => {
  fc.assert(
    fc.property(graph, (edges) => {
      const expanded = expandReferences(conditionOf(edges, 'a'), lookup(edges), 'a')
      const refersToItself = expanded.ok
        ? []
        : expanded.problems.filter(({ message }) => message.includes('→'))
      expect(refersToItself.length > 0).toBe(reachesCycle(edges, 'a', []))
      for (const { message } of refersToItself) {
        const cycle = (message.split(': ')[1] as string).split(' → ')
        expect(cycle.at(-1)).toBe(cycle[0])
        for (let at = 1; at < cycle.length; at++)
          expect(below(edges, cycle[at - 1] as string)).toContain(cycle[at])
      }
      if (expanded.ok) expect(parseCondition(expanded.json).ok).toBe(true)
    }),
    { numRuns: 2_000 },
  )
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalText } from '../../src/domain/condition/canonical.ts'
import { expandReferences, type References } from '../../src/domain/condition/expand.ts'
import { normalCondition, normalMeasure } from '../../src/domain/condition/normal.ts'
import { parseCondition, parseMeasure } from '../../src/domain/condition/parse.ts'
import { printCondition, printMeasure } from '../../src/domain/condition/text/print.ts'
import { readConditionText, readMeasureText } from '../../src/domain/condition/text/read.ts'
import type { JsonObject } from '../../src/domain/message.ts'
import { anyCondition, anyMeasure } from './condition-json.ts'

const runs = { numRuns: 300 }

const references: References = {
  audience: (key) => ({
    where: { trait: [key], op: 'exists' },
    timezone: 'Asia/Tokyo',
    includeAnonymous: key.length > 1,
  }),
  computed: (key) => ({
    definition: { event: { name: key }, last: { prop: 'x' } },
    timezone: 'UTC',
  }),
}

const meaning = (json: JsonObject): string => {
  const expanded = expandReferences(json, references)
  if (!expanded.ok) throw new Error(JSON.stringify(expanded.problems))
  const parsed = parseCondition(expanded.json, { timezone: 'Europe/Dublin' })
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems))
  return canonicalText(parsed.condition)
}

test('P12: JSON to text to JSON is the identity on normal JSON, and text to JSON to text on printed text', () => {
  fc.assert(
    fc.property(anyCondition, (json) => {
      const text = printCondition(json)
      const read = readConditionText(text)
      expect(read).toEqual({ ok: true, json: normalCondition(json) })
      if (read.ok) expect(printCondition(read.json)).toBe(text)
    }),
    runs,
  )
})

test('normal JSON says what was written, and is its own normal form', () => {
  fc.assert(
    fc.property(anyCondition, (json) => {
      const normal = normalCondition(json)
      expect(normalCondition(normal)).toEqual(normal)
      const [written, normalised] = [meaning(json), meaning(normal)]
      // Groups within the filters of events are not folded where leaves get their names.
      if (!/"(?:all|any|not)\(/.test(written)) expect(normalised).toBe(written)
    }),
    runs,
  )
})

test('computed traits are written and read like conditions', () => {
  fc.assert(
    fc.property(anyMeasure, (json) => {
      expect(parseMeasure(json).ok).toBe(true)
      const text = printMeasure(json)
      expect(readMeasureText(text)).toEqual({ ok: true, json: normalMeasure(json) })
    }),
    runs,
  )
})

test('any text is read or refused at a place within it, in bounded time', () => {
  const words = [
    'event',
    'trait',
    "('a')",
    '(',
    ')',
    '.',
    'where',
    'AND',
    'NOT',
    '>=',
    '1',
    "'",
    ',',
  ]
  const soup = fc.array(fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: 3 })), {
    maxLength: 40,
  })
  fc.assert(
    fc.property(soup, (parts) => {
      const text = parts.join(' ')
      const read = readConditionText(text)
      if (read.ok) return
      const lines = text.split('\n')
      for (const { line, column, message } of read.problems) {
        expect(message).toMatch(/^expected /)
        expect(column).toBeLessThanOrEqual((lines[line - 1] as string).length + 1)
      }
    }),
    runs,
  )
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Line, lookFor, readFixed } from '../../src/domain/fixed-text.ts'

const depthMax = 64
const inner = lookFor(['b'])
const outer = lookFor(['a', 'b'], { a: inner })

/** Within other bytes, as lines are. */
const lineOf = (text: string): Line => {
  const before = '0"{'
  const start = Buffer.byteLength(before)
  const bytes = Buffer.from(`${before}${text}\n"}`)
  return { bytes, start, end: bytes.length - 3 }
}

const isFixed = (text: string) => readFixed(lineOf(text), outer, depthMax)

const isWrittenSo = (text: string) => {
  try {
    return JSON.stringify(JSON.parse(text)) === text
  } catch {
    return false
  }
}

describe('reads', () => {
  test.each([
    '{}',
    '{"a":[]}',
    '{"a":{"b":[{},[[]],null,true,false]}}',
    '{"a":0,"b":-1,"c":123456789012345,"d":-0.5,"e":0.000001,"f":10.25}',
    '{"é":"ü","😀":"\u2028 \u007f","":""}',
    '{"a":"\\"\\\\\\b\\f\\n\\r\\t/"}',
    '{"-1":1,"_":2,"a1":{"a1":3}}',
  ])('%s', (text) => {
    expect(isWrittenSo(text)).toBe(true)
    expect(isFixed(text)).toBe(true)
  })
})

describe('leaves to a parser', () => {
  test.each([
    ['', 'nothing'],
    ['[]', 'a list'],
    ['"{}"', 'a text'],
    ['{} ', 'white space'],
    ['{"a": 1}', 'white space'],
    ['{"a":1}}', 'too many brackets'],
    ['{"a":1', 'too few brackets'],
    ['{"a":[1}', 'the wrong bracket'],
    ['{"a":{"b":1]}', 'the wrong bracket'],
    ['{"a":1,}', 'a comma too many'],
    ['{"a":[1,]}', 'a comma too many'],
    ['{"a"}', 'a name without a value'],
    ['{"a":}', 'a name without a value'],
    ['{a:1}', 'a name without quotes'],
    ['{"a":1,"a":2}', 'a name twice'],
    ['{"b":{"c":1,"d":2,"c":3}}', 'a name twice'],
    ['{"b":1,"2":2}', 'a name that is a number'],
    ['{"__proto__":1}', 'a name that is not kept'],
    ['{"\\u0061":1}', 'a name that is escaped'],
    ['{"a":"\\/"}', 'an escape JSON.stringify does not write'],
    ['{"a":"\\u0041"}', 'an escape JSON.stringify does not write'],
    ['{"a":"\\ud800"}', 'half a character'],
    ['{"a":"\\u0000"}', 'NUL'],
    ['{"a":"\t"}', 'a control character'],
    ['{"a":"b}', 'an open text'],
    ['{"a":01}', 'a zero before a number'],
    ['{"a":-0}', 'a zero below zero'],
    ['{"a":-0.0}', 'a zero below zero'],
    ['{"a":1.0}', 'a zero behind a number'],
    ['{"a":1.}', 'half a number'],
    ['{"a":.5}', 'half a number'],
    ['{"a":-}', 'half a number'],
    ['{"a":1e5}', 'an exponent'],
    ['{"a":0.0000001}', 'what is written with an exponent'],
    ['{"a":9007199254740993}', 'a number of many digits'],
    ['{"a":0.12345678901234567}', 'a number of many digits'],
    ['{"a":nul}', 'half a word'],
    ['{"a":truex}', 'more than a word'],
    ['{"a":undefined}', 'another word'],
  ])('%s: %s', (text) => {
    expect(isFixed(text)).toBe(false)
  })

  test('what is nested deeper than it may be', () => {
    const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
    const lists = (depth: number) => `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`
    expect(isFixed(nested(depthMax))).toBe(true)
    expect(isFixed(nested(depthMax + 1))).toBe(false)
    expect(isFixed(lists(depthMax - 1))).toBe(true)
    expect(isFixed(lists(depthMax))).toBe(false)
  })

  test('an object of very many names', () => {
    const wide = (names: number) =>
      JSON.stringify(Object.fromEntries(Array.from({ length: names }, (_, n) => [`n${n}`, n])))
    expect(isFixed(wide(64))).toBe(true)
    expect(isFixed(wide(65))).toBe(false)
  })
})

const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 6 }).map((text) => JSON.stringify(text)),
  fc.constantFrom('"a"', '"b"', '"é\\n"', '"\\u00e9"', '"\\/"', '"__proto__"', '"1"', '"a', '""'),
)
const anyNumber = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => JSON.stringify(number)),
  fc.maxSafeInteger().map(String),
  fc.integer({ min: -99_999, max: 99_999 }).map((cents) => String(cents / 100)),
  fc.stringMatching(/^-?[0-9]{0,17}\.?[0-9]{0,9}(e1)?$/),
)
const anyJson = fc.letrec<{ value: string; map: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    anyText,
    anyNumber,
    fc.constantFrom('true', 'false', 'null', 'nul', '', ' 1'),
    fc.array(tie('value'), { maxLength: 4 }).map((items) => `[${items.join()}]`),
    tie('map'),
  ),
  map: fc
    .array(fc.tuple(anyText, tie('value')), { maxLength: 5 })
    .map((members) => `{${members.map(([name, value]) => `${name}:${value}`).join()}}`),
}))

test('is never mistaken: what it reads, JSON.stringify writes', () => {
  let read = 0
  fc.assert(
    fc.property(anyJson.map, (text) => {
      if (!isFixed(text)) return
      read += 1
      expect(isWrittenSo(text)).toBe(true)
    }),
    { numRuns: 2_000 },
  )
  expect(read).toBeGreaterThan(100)
})

test('reads what people write: words, prices, lists and maps', () => {
  const word = fc.stringMatching(/^[a-z][a-zA-Z ]{0,11}$/)
  const price = fc.integer({ min: -9_999_999, max: 9_999_999 }).map((cents) => cents / 100)
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      word,
      price,
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(word, tie('value'), { maxKeys: 8 }),
    ),
  }))
  fc.assert(
    fc.property(fc.dictionary(word, value.value), (map) => {
      expect(isFixed(JSON.stringify(map))).toBe(true)
    }),
  )
})

describe('finds members', () => {
  const found = (text: string) => {
    const line = lineOf(text)
    expect(readFixed(line, outer, depthMax)).toBe(true)
    const textIn = (members: typeof inner | typeof outer) =>
      members.isFound('b')
        ? line.bytes.toString('utf8', members.startOf('b'), members.endOf('b'))
        : null
    return { outer: textIn(outer), inner: textIn(inner), isFound: outer.isFound('a') }
  }

  test('where they stand, and none of the same name within others', () => {
    const text = '{"c":{"a":{"b":1}},"a":{"x":[{"b":2}],"b":"3"},"b":{"b":4}}'
    expect(found(text)).toEqual({ outer: '{"b":4}', inner: '"3"', isFound: true })
  })

  test('and forgets those of the text before', () => {
    found('{"a":{"b":1},"b":2}')
    expect(found('{"a":[{"b":1}]}')).toEqual({ outer: null, inner: null, isFound: true })
    expect(found('{}')).toEqual({ outer: null, inner: null, isFound: false })
  })
})

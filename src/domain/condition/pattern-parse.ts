// Reading a pattern: literals, ., classes, groups, |, * + ? {m,n}, ^ and $; what needs backtracking is refused.

/** Code points, both ends included. */
export type CharSet = {
  readonly negated: boolean
  readonly ranges: readonly (readonly [number, number])[]
}

export type Node =
  | { readonly type: 'char'; readonly set: CharSet }
  /** The start and the end of the text. */
  | { readonly type: 'start' | 'end' }
  | { readonly type: 'all' | 'any'; readonly of: readonly Node[] }
  /** `max` of `null` is without end. */
  | {
      readonly type: 'repeat'
      readonly of: Node
      readonly min: number
      readonly max: number | null
    }

type Cursor = { readonly text: readonly string[]; at: number }

class Refusal extends Error {}

const refuse = (message: string): never => {
  throw new Refusal(message)
}

/** The tree, or a sentence that says what was expected instead. */
export const parseNode = (text: string): Node | string => {
  const cursor: Cursor = { text: Array.from(text), at: 0 }
  try {
    const node = alternatives(cursor)
    if (cursor.at < cursor.text.length) refuse('expected "(" before ")" in the pattern')
    return node
  } catch (cause) {
    if (cause instanceof Refusal) return cause.message
    throw cause
  }
}

const peek = ({ text, at }: Cursor): string | undefined => text[at]

const take = (cursor: Cursor): string =>
  cursor.text[cursor.at++] ?? refuse('expected more of the pattern: it ends too early')

const skip = (cursor: Cursor, expected: string): boolean => {
  const found = cursor.text.slice(cursor.at, cursor.at + expected.length).join('') === expected
  if (found) cursor.at += expected.length
  return found
}

const alternatives = (cursor: Cursor): Node => {
  const of = [sequence(cursor)]
  while (skip(cursor, '|')) of.push(sequence(cursor))
  return of.length === 1 ? (of[0] as Node) : { type: 'any', of }
}

const sequence = (cursor: Cursor): Node => {
  const of: Node[] = []
  for (let next = peek(cursor); next !== undefined && next !== '|' && next !== ')'; ) {
    of.push(repeated(cursor, atom(cursor)))
    next = peek(cursor)
  }
  return of.length === 1 ? (of[0] as Node) : { type: 'all', of }
}

const times: Readonly<Record<string, readonly [number, number | null]>> = {
  '*': [0, null],
  '+': [1, null],
  '?': [0, 1],
}

const repeated = (cursor: Cursor, of: Node): Node => {
  const sign = peek(cursor)
  const range = sign === '{' ? bounds(cursor) : times[sign ?? '']
  if (range === undefined) return of
  if (sign !== '{') cursor.at += 1
  // Whether it takes more or fewer of them decides nothing about whether there is a match.
  skip(cursor, '?')
  if (/^[*+?{]$/.test(peek(cursor) ?? '')) refuse('expected something between two repetitions')
  return { type: 'repeat', of, min: range[0], max: range[1] }
}

const bounds = (cursor: Cursor): readonly [number, number | null] => {
  const rest = cursor.text.slice(cursor.at).join('')
  const [whole, from, comma, to] = /^\{(\d{1,4})(?:(,)(\d{1,4})?)?\}/.exec(rest) ?? []
  if (whole === undefined)
    return refuse('expected "{3}", "{3,}" or "{3,5}"; write a brace as "\\{"')
  cursor.at += whole.length
  const min = Number(from)
  const max = to === undefined ? (comma === undefined ? min : null) : Number(to)
  return max !== null && max < min ? refuse('expected "{m,n}" with m up to n') : [min, max]
}

const atom = (cursor: Cursor): Node => {
  const character = take(cursor)
  switch (character) {
    case '^':
      return { type: 'start' }
    case '$':
      return { type: 'end' }
    case '.':
      return char({ negated: true, ranges: [[10, 10]] })
    case '(':
      return group(cursor)
    case '[':
      return char(charClass(cursor))
    case '\\':
      return char(escaped(cursor))
    case '*':
    case '+':
    case '?':
    case '{':
      return refuse(`expected something to repeat before "${character}"`)
    default:
      return char(only(character))
  }
}

const char = (set: CharSet): Node => ({ type: 'char', set })

const only = (character: string): CharSet => {
  const point = character.codePointAt(0) as number
  return { negated: false, ranges: [[point, point]] }
}

const group = (cursor: Cursor): Node => {
  if (!skip(cursor, '?:') && peek(cursor) === '?')
    refuse('expected "(" or "(?:": looking ahead or behind is not possible')
  const node = alternatives(cursor)
  return skip(cursor, ')') ? node : refuse('expected ")" in the pattern')
}

const digits: CharSet['ranges'] = [[48, 57]]
const words: CharSet['ranges'] = [
  [48, 57],
  [65, 90],
  [95, 95],
  [97, 122],
]
const spaces: CharSet['ranges'] = [
  [9, 10],
  [12, 13],
  [32, 32],
]

const sets: Readonly<Record<string, CharSet>> = {
  d: { negated: false, ranges: digits },
  D: { negated: true, ranges: digits },
  w: { negated: false, ranges: words },
  W: { negated: true, ranges: words },
  s: { negated: false, ranges: spaces },
  S: { negated: true, ranges: spaces },
  t: only('\t'),
  n: only('\n'),
  r: only('\r'),
}

const escaped = (cursor: Cursor): CharSet => {
  const character = take(cursor)
  const set = sets[character]
  if (set !== undefined) return set
  return /^[0-9A-Za-z]$/.test(character)
    ? refuse(
        `expected \\d, \\w, \\s, \\t, \\n, \\r or an escaped sign: "\\${character}" cannot be matched`,
      )
    : only(character)
}

const charClass = (cursor: Cursor): CharSet => {
  const negated = skip(cursor, '^')
  const ranges: (readonly [number, number])[] = []
  do {
    const from = member(cursor)
    const ranged = peek(cursor) === '-' && cursor.text[cursor.at + 1] !== ']'
    if (!ranged) {
      ranges.push(...from.ranges)
      continue
    }
    cursor.at += 1
    const [low, high] = [single(from), single(member(cursor))]
    if (low === null || high === null || low > high)
      refuse('expected a range such as "a-z" in the brackets')
    ranges.push([low as number, high as number])
  } while (peek(cursor) !== ']')
  cursor.at += 1
  return { negated, ranges }
}

const member = (cursor: Cursor): CharSet => {
  const character = take(cursor)
  if (character === ']') return refuse('expected something in the brackets; write "]" as "\\]"')
  const set = character === '\\' ? escaped(cursor) : only(character)
  return set.negated ? refuse('expected no \\D, \\W or \\S in brackets') : set
}

const single = ({ ranges }: CharSet): number | null =>
  ranges.length === 1 && ranges[0]?.[0] === ranges[0]?.[1] ? (ranges[0]?.[0] ?? null) : null

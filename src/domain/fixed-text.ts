// Reads JSON text that JSON.stringify would write just so after JSON.parse, and finds members in it. Clients and
// exports mostly write that very text; what any other text comes to only a parser can tell.

/** One line of UTF-8; nothing is read at `end` or behind it. */
export type Line = { readonly bytes: Buffer; readonly start: number; readonly end: number }

/** Members that are looked for in an object, and where their values were found: until the next text is read. */
export type Members<Name extends string> = {
  isFound(name: Name): boolean
  /** The first byte of its value; -1 where it was not found. */
  startOf(name: Name): number
  /** Behind its value. */
  endOf(name: Name): number
  readonly places: Places
}

type Places = {
  readonly byLength: readonly (readonly Wanted[] | undefined)[]
  readonly starts: Int32Array
  readonly ends: Int32Array
  /** Of those within. */
  readonly inner: readonly Places[]
}

type Wanted = { readonly text: Buffer; readonly index: number; readonly within: Places | null }

export const quote = 0x22
export const openBrace = 0x7b
export const backslash = 0x5c
const comma = 0x2c
const minus = 0x2d
const point = 0x2e
const zero = 0x30
const nine = 0x39
const colon = 0x3a
const underscore = 0x5f
const openBracket = 0x5b
const closeBracket = 0x5d
const closeBrace = 0x7d
const space = 0x20

const nowhere = -1

/** `within`: of which of them members are looked for in turn. */
export const lookFor = <Name extends string>(
  names: readonly Name[],
  within: { readonly [name in Name]?: Members<string> } = {},
): Members<Name> => {
  const byLength: Wanted[][] = []
  const inner: Places[] = []
  for (const [index, name] of names.entries()) {
    const wanted = { text: Buffer.from(name), index, within: within[name]?.places ?? null }
    if (wanted.within) inner.push(wanted.within)
    byLength[name.length] = [...(byLength[name.length] ?? []), wanted]
  }
  const starts = new Int32Array(names.length)
  const ends = new Int32Array(names.length)
  const indexes = new Map(names.map((name, index) => [name, index]))
  const indexOf = (name: Name) => indexes.get(name) as number
  return {
    isFound: (name) => starts[indexOf(name)] !== nowhere,
    startOf: (name) => starts[indexOf(name)] as number,
    endOf: (name) => ends[indexOf(name)] as number,
    places: { byLength, starts, ends, inner },
  }
}

/** Of the text being read; there is one at a time. */
let bytes: Buffer = Buffer.alloc(0)
let end = 0
let depthMax = 0

/** Names of all objects that are open, as hashes: no name may stand twice in one. */
const names = new Int32Array(1_024)
let namesHeld = 0
/** Each is compared with all before it. */
const namesOfOneMax = 64

/** `false`: it is no object, nested too deep, or not written so. */
export const readFixed = (line: Line, members: Members<string>, depth: number): boolean => {
  bytes = line.bytes
  end = line.end
  depthMax = depth
  namesHeld = 0
  forget(members.places)
  if (bytes[line.start] !== openBrace) return false
  return endOfMap(line.start, 1, members.places) === end
}

const endOfMap = (start: number, depth: number, places: Places | null): number => {
  if (depth > depthMax) return nowhere
  const first = namesHeld
  let at = start + 1
  if (bytes[at] === closeBrace) return at + 1
  for (;;) {
    const name = at + 1
    at = endOfName(at, first)
    if (at === nowhere) return nowhere
    const value = at + 1
    const wanted = places === null ? undefined : wantedOf(places, name, at - 1)
    at = endOfMember(value, depth, wanted)
    if (at === nowhere) return nowhere
    if (places !== null && wanted !== undefined) {
      places.starts[wanted.index] = value
      places.ends[wanted.index] = at
    }
    if (bytes[at] !== comma) break
    at += 1
  }
  namesHeld = first
  return bytes[at] === closeBrace ? at + 1 : nowhere
}

const forget = ({ starts, inner }: Places): void => {
  for (let at = 0; at < starts.length; at += 1) starts[at] = nowhere
  for (const places of inner) forget(places)
}

const endOfMember = (start: number, depth: number, wanted: Wanted | undefined): number =>
  wanted?.within && bytes[start] === openBrace
    ? endOfMap(start, depth + 1, wanted.within)
    : endOfValue(start, depth)

const endOfValue = (start: number, depth: number): number => {
  const byte = bytes[start]
  if (byte === quote) return endOfString(start)
  if (byte === openBrace) return endOfMap(start, depth + 1, null)
  if (byte === openBracket) return endOfList(start, depth + 1)
  return endOfWord(start)
}

const endOfList = (start: number, depth: number): number => {
  if (depth > depthMax) return nowhere
  let at = start + 1
  if (bytes[at] === closeBracket) return at + 1
  for (;;) {
    at = endOfValue(at, depth)
    if (at === nowhere) return nowhere
    if (bytes[at] !== comma) break
    at += 1
  }
  return bytes[at] === closeBracket ? at + 1 : nowhere
}

/** Behind the closing quote. Bytes of other alphabets are never mistaken for it: that is how UTF-8 is made. */
const endOfString = (start: number): number => {
  for (let at = start + 1; at < end; at += 1) {
    const byte = bytes[at] as number
    if (byte === quote) return at + 1
    if (byte < space) return nowhere
    if (byte !== backslash) continue
    at += 1
    if (!isShortEscape(bytes[at])) return nowhere
  }
  return nowhere
}

const shortEscapes = new Uint8Array(256)
for (const byte of Buffer.from('"\\bfnrt')) shortEscapes[byte] = 1

/** What is escaped by its number is written otherwise than it was, or replaced, or refused: all that is rare. */
const isShortEscape = (byte: number | undefined) => byte !== undefined && shortEscapes[byte] === 1

/** At its colon. Names that are numbers stand first in an object, wherever they were written. */
const endOfName = (start: number, first: number): number => {
  const begin = bytes[start + 1] as number
  if (bytes[start] !== quote || (begin >= zero && begin <= nine)) return nowhere
  if (begin === underscore && bytes[start + 2] === underscore) return nowhere
  let hash = 0
  let at = start + 1
  for (; at < end && bytes[at] !== quote; at += 1) {
    const byte = bytes[at] as number
    if (byte < space || byte === backslash) return nowhere
    hash = Math.imul(hash, 31) + byte
  }
  return bytes[at + 1] === colon && isNew(hash | 0, first) ? at + 1 : nowhere
}

const isNew = (hash: number, first: number): boolean => {
  if (namesHeld - first >= namesOfOneMax || namesHeld >= names.length) return false
  for (let at = first; at < namesHeld; at += 1) if (names[at] === hash) return false
  names[namesHeld] = hash
  namesHeld += 1
  return true
}

const wantedOf = ({ byLength }: Places, start: number, until: number): Wanted | undefined => {
  const alike = byLength[until - start]
  if (alike === undefined) return undefined
  for (const wanted of alike) if (isTextAt(start, wanted.text)) return wanted
  return undefined
}

const isTextAt = (start: number, text: Buffer): boolean => {
  for (let at = 0; at < text.length; at += 1) if (bytes[start + at] !== text[at]) return false
  return true
}

const words = ['true', 'false', 'null'].map((word) => Buffer.from(word))

const endOfWord = (start: number): number => {
  const byte = bytes[start] as number
  if (byte === minus || (byte >= zero && byte <= nine)) return endOfNumber(start)
  const word = words.find((text) => text[0] === byte && isTextAt(start, text))
  return word === undefined ? nowhere : start + word.length
}

/** Two decimals of so many digits are two numbers, and none has a shorter one. */
const digitsMax = 15
/** Of a fraction: what is smaller is written with an exponent. */
const zerosMax = 5

const endOfNumber = (start: number): number => {
  const whole = bytes[start] === minus ? start + 1 : start
  let at = endOfDigits(whole)
  const isZero = bytes[whole] === zero
  if (at === whole || (isZero && at > whole + 1)) return nowhere
  if (bytes[at] !== point) {
    // There is no zero below zero in JSON.stringify's text.
    const isMinusZero = isZero && whole > start
    return isMinusZero || at - whole > digitsMax ? nowhere : at
  }
  const fraction = at + 1
  at = endOfDigits(fraction)
  if (at === fraction || bytes[at - 1] === zero || at - whole - 1 > digitsMax) return nowhere
  let digit = fraction
  while (bytes[digit] === zero) digit += 1
  return isZero && digit - fraction > zerosMax ? nowhere : at
}

const endOfDigits = (start: number): number => {
  let at = start
  while ((bytes[at] as number) >= zero && (bytes[at] as number) <= nine) at += 1
  return at
}

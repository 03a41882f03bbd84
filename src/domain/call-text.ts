// The parts of a stored call that its message is made of, found in its text without parsing it: most of a call
// is not in its message, and what is goes out as it stands.
import type { Json } from './message.ts'

/** Where a value stands: its first byte, and the one behind its last. */
type Span = { readonly start: number; readonly end: number }

const parts = ['context', 'traits', 'properties', 'integrations', 'name', 'category'] as const

export type Part = (typeof parts)[number]

/** A call's members that make up messages; `null`: the call lacks it. */
export type CallText = { readonly bytes: Buffer } & { [name in Part]: Span | null }

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const openBrace = 0x7b
const closeBrace = 0x7d

/**
 * Reads the text that JSON.stringify makes of an object, as every stored call is: no white space, no key twice.
 * `null`: it is something else, and only a parser can tell what.
 */
export const readCall = (bytes: Buffer): CallText | null => {
  const call: CallText = {
    bytes,
    context: null,
    traits: null,
    properties: null,
    integrations: null,
    name: null,
    category: null,
  }
  const last = bytes.length - 1
  if (last < 1 || bytes[0] !== openBrace || bytes[last] !== closeBrace) return null
  if (last === 1) return call
  let at = 1
  for (;;) {
    const end = readMember(bytes, at, call)
    if (end === last) return call
    if (end > last || bytes[end] !== comma) return null
    at = end + 1
  }
}

/** Behind it; beyond the text where it is none. */
const readMember = (bytes: Buffer, at: number, call: CallText): number => {
  const nowhere = bytes.length
  if (bytes[at] !== quote) return nowhere
  const keyEnd = endOfString(bytes, at)
  const start = keyEnd + 1
  if (bytes[keyEnd] !== colon) return nowhere
  const end = endOfValue(bytes, start)
  if (end === start) return nowhere
  const part = partAt(bytes, at + 1, keyEnd - 1)
  if (part === null) return end
  if (call[part] !== null) return nowhere
  call[part] = { start, end }
  return end
}

export const isObjectAt = ({ bytes }: CallText, span: Span | null): span is Span =>
  span !== null && bytes[span.start] === openBrace

export const valueAt = ({ bytes }: CallText, { start, end }: Span): Json =>
  JSON.parse(bytes.toString('utf8', start, end))

/** Behind the closing quote. Bytes of other alphabets are never mistaken for it: that is how UTF-8 is made. */
const endOfString = (bytes: Buffer, start: number): number => {
  const { length } = bytes
  for (let at = start + 1; at < length; at += 1) {
    const byte = bytes[at]
    if (byte === quote) return at + 1
    if (byte === backslash) at += 1
  }
  return length + 1
}

/** Behind the value; the brackets within are only counted, since a serialiser made the text. */
const endOfValue = (bytes: Buffer, start: number): number => {
  const first = (bytes[start] as number) | bracketBit
  if (bytes[start] === quote) return endOfString(bytes, start)
  return first === openBrace ? endOfBrackets(bytes, start) : endOfWord(bytes, start)
}

/** Brackets differ from braces in this bit alone. */
const bracketBit = 0x20

/** Strings are passed over within one loop: calling for each took twice the time. */
const endOfBrackets = (bytes: Buffer, start: number): number => {
  const { length } = bytes
  let depth = 0
  for (let at = start; at < length; at += 1) {
    const byte = bytes[at] as number
    if (byte === quote) {
      for (at += 1; at < length && bytes[at] !== quote; at += 1)
        if (bytes[at] === backslash) at += 1
    } else if ((byte | bracketBit) === openBrace) depth += 1
    else if ((byte | bracketBit) === closeBrace) {
      depth -= 1
      if (depth === 0) return at + 1
    }
  }
  return length + 1
}

/** A number, or one of the three words. */
const endOfWord = (bytes: Buffer, start: number): number => {
  let at = start
  while (at < bytes.length && bytes[at] !== comma && bytes[at] !== closeBrace) at += 1
  return at
}

/** No two are of the same length. */
const byLength = new Map(parts.map((name) => [name.length, { name, text: Buffer.from(name) }]))

const partAt = (bytes: Buffer, start: number, end: number): Part | null => {
  const part = byLength.get(end - start)
  return part && isTextAt(bytes, start, part.text) ? part.name : null
}

const isTextAt = (bytes: Buffer, start: number, text: Buffer): boolean => {
  for (let at = 0; at < text.length; at += 1) if (bytes[start + at] !== text[at]) return false
  return true
}

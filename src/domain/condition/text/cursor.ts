// Going through the words of a text, and remembering where each part of what is made of them stood.
import type { Json, JsonObject } from '../../message.ts'
import { Refusal, type Token, tokensOf } from './token.ts'

export type Cursor = {
  peek(): Token
  take(): Token
  /** Takes the sign or word if it is next. */
  skip(text: string): boolean
  /** Takes it, or refuses with what was expected. */
  expect(text: string): Token
  /** Always throws, at the next token unless another place is given. */
  refuse(expected: string, at?: number): never
  /** Remembers where an object, and keys of it, came from. */
  note<T extends JsonObject>(made: T, at: number, keys?: { readonly [key: string]: number }): T
  /** Remembers of `made` what is known of the parts it took from another. */
  like<T extends JsonObject>(made: T, from: JsonObject, at: number): T
  /** Where the part at a path such as `all[0].event` came from. */
  placeOf(json: Json, path: string): number
  /** Goes one level deeper. */
  nested<T>(read: () => T): T
}

/** Brackets in brackets; conditions hold fewer. */
const depthMax = 200

const says = (token: Token, text: string): boolean =>
  (token.type === 'sign' && token.text === text) ||
  (token.type === 'name' && token.text.toLowerCase() === text.toLowerCase())

export const cursorOf = (text: string): Cursor => {
  const tokens = tokensOf(text)
  const places = new WeakMap<object, { at: number; keys: { readonly [key: string]: number } }>()
  let next = 0
  let depth = 0
  const peek = () => tokens[next] as Token
  const take = () => (next < tokens.length - 1 ? (tokens[next++] as Token) : peek())
  const note: Cursor['note'] = (made, at, keys = {}) => {
    const known = places.get(made)
    places.set(made, { at: known?.at ?? at, keys: { ...known?.keys, ...keys } })
    return made
  }
  const refuse = (expected: string, at?: number): never => {
    const found = peek()
    throw at === undefined
      ? new Refusal(`expected ${expected}, found ${shown(found)}`, found.at)
      : new Refusal(`expected ${expected}`, at)
  }
  return {
    peek,
    take,
    refuse,
    skip: (word) => says(peek(), word) && take() !== undefined,
    expect: (word) => (says(peek(), word) ? take() : refuse(`"${word}"`)),
    note,
    like: (made, from, at) => note(made, at, places.get(from)?.keys),
    placeOf: (json, path) => {
      let at = 0
      let value: Json | undefined = json
      for (const key of path.split(/[.[\]]+/).filter((part) => part !== '')) {
        if (typeof value !== 'object' || value === null) break
        at = places.get(value)?.keys[key] ?? places.get(value)?.at ?? at
        value = (value as { readonly [key: string]: Json })[key]
      }
      if (typeof value !== 'object' || value === null) return at
      return places.get(value)?.at ?? at
    },
    nested: (read) => {
      if (++depth > depthMax) refuse(`at most ${depthMax} levels of brackets`, peek().at)
      const made = read()
      depth -= 1
      return made
    },
  }
}

const shown = ({ type, text }: Token): string => {
  if (type === 'end') return 'the end'
  return type === 'string' ? `'${text}'` : `"${text}"`
}

// Reading the smallest parts of the text form: literals, durations, names and paths.
import type { Json } from '../../message.ts'
import type { Cursor } from './cursor.ts'

export const readString = (cursor: Cursor, what: string): string =>
  cursor.peek().type === 'string' ? cursor.take().text : cursor.refuse(`${what} in quotes`)

export const readNumber = (cursor: Cursor): number =>
  cursor.peek().type === 'number' ? Number(cursor.take().text) : cursor.refuse('a number')

/** Other whole numbers than the one that was meant are not compared with: ids are often long. */
const readExact = (cursor: Cursor): number => {
  const { text } = cursor.peek()
  const value = Number(text)
  const isWhole = /^-?\d+$/.test(text)
  if (isWhole && BigInt(text) !== BigInt(value) && text !== String(value))
    return cursor.refuse(`a number that can be told from ${value}, or a text in quotes`)
  cursor.take()
  return value
}

/** `undefined` when something else comes next. */
export const tryLiteral = (cursor: Cursor): Json | undefined => {
  if (cursor.skip('literal')) return bracketed(cursor, () => readLiteral(cursor))
  const { type, text } = cursor.peek()
  if (type === 'string') return cursor.take().text
  if (type === 'number') return readExact(cursor)
  const truth = type === 'name' ? text.toLowerCase() : ''
  if (truth !== 'true' && truth !== 'false') return undefined
  cursor.take()
  return truth === 'true'
}

export const readLiteral = (cursor: Cursor): Json =>
  tryLiteral(cursor) ?? cursor.refuse('a text in quotes, a number, true or false')

const units: Readonly<Record<string, string>> = {
  ...{ second: 's', minute: 'm', hour: 'h', day: 'd', week: 'w' },
}

/** "30 days" as "30d". */
export const readDuration = (cursor: Cursor): string => {
  const count = cursor.peek()
  if (count.type !== 'number' || !/^[1-9]\d{0,8}$/.test(count.text))
    return cursor.refuse('a duration such as 30 days')
  cursor.take()
  const unit = units[cursor.peek().text.toLowerCase().replace(/s$/, '')]
  if (unit === undefined) return cursor.refuse('seconds, minutes, hours, days or weeks')
  cursor.take()
  return `${count.text}${unit}`
}

/** 'plan.tier', or ['a.b', 'c'] where a key holds a dot. */
export const readPathText = (cursor: Cursor): Json => {
  if (!cursor.skip('[')) return readString(cursor, 'a name such as plan.tier')
  const keys = readList(cursor, () => readString(cursor, 'a key'))
  cursor.expect(']')
  return keys
}

export const readList = <T>(cursor: Cursor, read: () => T): T[] => {
  const list = [read()]
  while (cursor.skip(',')) list.push(read())
  return list
}

export const bracketed = <T>(cursor: Cursor, read: () => T): T => {
  cursor.expect('(')
  const made = read()
  cursor.expect(')')
  return made
}

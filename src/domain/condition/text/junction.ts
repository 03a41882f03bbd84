// AND, OR, NOT and brackets, the same for conditions and for the filters of events.
import type { JsonObject } from '../../message.ts'
import type { Cursor } from './cursor.ts'

/** AND binds tighter than OR, NOT tighter than both. */
export const readJunction = (cursor: Cursor, primary: () => JsonObject): JsonObject =>
  readChain(cursor, ['OR', 'any'], () =>
    readChain(cursor, ['AND', 'all'], () => readNot(cursor, primary)),
  )

const readChain = (
  cursor: Cursor,
  [word, kind]: readonly [string, 'all' | 'any'],
  read: () => JsonObject,
): JsonObject => {
  const { at } = cursor.peek()
  const first = read()
  const list = [first]
  while (cursor.skip(word)) list.push(read())
  return list.length === 1 ? first : cursor.note({ [kind]: list }, at)
}

const readNot = (cursor: Cursor, primary: () => JsonObject): JsonObject => {
  const { at } = cursor.peek()
  if (cursor.skip('NOT'))
    return cursor.note({ not: cursor.nested(() => readNot(cursor, primary)) }, at)
  if (!cursor.skip('(')) return primary()
  const inner = cursor.nested(() => readJunction(cursor, primary))
  if (!cursor.skip(')')) return cursor.refuse('AND, OR or ")"')
  return inner
}

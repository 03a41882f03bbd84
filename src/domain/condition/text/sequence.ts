// Reading sequence(event('A') as a, did event('B') within 1 day, …) and the window behind it.
import type { Json, JsonObject } from '../../message.ts'
import type { Cursor } from './cursor.ts'
import { type Chain, readChain, stepOf } from './event.ts'
import { bracketed, readDuration, readList } from './value.ts'

export const readSequence = (cursor: Cursor): JsonObject => {
  const { at } = cursor.expect('sequence')
  const sequence: Record<string, Json> = {}
  const { window, steps } = bracketed(cursor, () => readSteps(cursor))
  sequence['steps'] = steps
  if (window !== null) sequence['window'] = window
  if (cursor.skip('.')) {
    cursor.expect('settle')
    sequence['settle'] = bracketed(cursor, () => {
      const { text } = cursor.peek()
      if (text !== 'immediate' && text !== 'after_deadline')
        return cursor.refuse('immediate or after_deadline')
      return cursor.take().text
    })
  }
  return cursor.note({ sequence: cursor.note(sequence, at) }, at)
}

type Steps = { readonly window: JsonObject | null; readonly steps: readonly JsonObject[] }

const readSteps = (cursor: Cursor): Steps => {
  const read = readList(cursor, () => readStep(cursor))
  const [first, ...others] = read
  for (const { chain } of others)
    if (chain.window !== null)
      cursor.refuse(
        'a window of the first step only: of a later one say how soon it comes',
        chain.at,
      )
  return { window: first?.chain.window ?? null, steps: read.map(({ step }) => step) }
}

/** [did|did_not] event('…').where(…) [as a] [within 1 day]; the first step's window is the sequence's. */
const readStep = (cursor: Cursor): { readonly step: JsonObject; readonly chain: Chain } => {
  const { at } = cursor.peek()
  const not = cursor.skip('did_not')
  if (!not) cursor.skip('did')
  if (cursor.peek().text !== 'event') return cursor.refuse("event('…'), did or did_not")
  const chain = readChain(cursor, null)
  if (chain.reducer !== null)
    return cursor.refuse('a step without a count or other value', chain.at)
  const label = cursor.skip('as') ? readLabel(cursor) : null
  const within = cursor.skip('within') ? readDuration(cursor) : null
  const step = stepOf(cursor, chain, { name: label, within })
  return { step: not ? cursor.like({ ...step, then: 'did_not' }, step, at) : step, chain }
}

const readLabel = (cursor: Cursor): string =>
  cursor.peek().type === 'name' ? cursor.take().text : cursor.refuse('a name for the step')

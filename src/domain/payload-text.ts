// The body of a message made from the text of its call: the bytes that payload.ts comes to by parsing and
// serialising, at a third of the cost. What stands in a call is a fixed point, so its parts are too.
import { type CallText, isObjectAt, valueAt } from './call-text.ts'
import type { JsonObject } from './message.ts'
import { pageProperties, payloadVersion, type Routed } from './payload.ts'
import { isoOf } from './timestamp.ts'

/** `null`: of a kind so rare that only the parser's way is kept for it. */
export const renderText = (message: Routed, call: CallText): Buffer | null => {
  switch (message.type) {
    case 'identify':
      return between(`${headOf(message)},"traits":`, call, { span: call.traits, tail: '}' })
    case 'track': {
      const tail = `,"event":${JSON.stringify(message.event ?? '')}}`
      return between(`${headOf(message)},"properties":`, call, { span: call.properties, tail })
    }
    case 'page':
      return renderPage(message, call)
    case 'group': {
      const tail = `,"groupId":${JSON.stringify(message.groupId ?? '')}}`
      return between(`${headOf(message)},"traits":`, call, { span: call.traits, tail })
    }
    default:
      return null
  }
}

const headOf = ({ type, userId, timestamp }: Routed): string => {
  const user = userId === null ? '' : `,"userId":${JSON.stringify(userId)}`
  return `{"version":${payloadVersion},"type":"${type}"${user},"timestamp":"${isoOf(timestamp)}"`
}

/** A name or category may have to go into the properties, among which they have their place by the parser. */
const renderPage = (message: Routed, call: CallText): Buffer => {
  const head = `${headOf(message)},"properties":`
  const { name, category, properties } = call
  if (name === null && category === null)
    return between(head, call, { span: properties, tail: '}' })
  const page: Record<string, JsonObject[string]> = {}
  if (properties) page['properties'] = valueAt(call, properties)
  if (name) page['name'] = valueAt(call, name)
  if (category) page['category'] = valueAt(call, category)
  return Buffer.from(`${head}${JSON.stringify(pageProperties(page))}}`, 'utf8')
}

type Middle = { readonly span: CallText['traits']; readonly tail: string }

let scratch = Buffer.allocUnsafeSlow(65_536)

/** Written into one scratch and copied out once. A part that is no object is left out of every message. */
const between = (head: string, call: CallText, { span, tail }: Middle): Buffer => {
  const middle = isObjectAt(call, span) ? span : null
  const most = 3 * (head.length + tail.length) + (middle ? middle.end - middle.start : 2)
  if (most > scratch.length) scratch = Buffer.allocUnsafeSlow(most)
  let at = scratch.write(head, 0)
  if (middle) at += call.bytes.copy(scratch, at, middle.start, middle.end)
  else at += scratch.write('{}', at)
  at += scratch.write(tail, at)
  return Buffer.from(scratch.subarray(0, at))
}

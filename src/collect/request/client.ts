// Names the client of a request in a log line: which program sent it, so that its author can be told.
import { isObject, type Json } from '../../domain/message.ts'
import type { Envelope } from './envelope.ts'

/** Characters of each name. */
const shownMax = 100

export type Client = { readonly userAgent: string | null; readonly library: string | null }

export const clientOf = (userAgent: string | null, envelope: Envelope | null): Client => ({
  userAgent: userAgent === null ? null : shown(userAgent),
  library: envelope === null ? null : libraryOf(envelope),
})

/** Of the batch, else of its first call. */
const libraryOf = ({ context, calls }: Envelope): string | null => {
  const [first] = calls
  const own = isObject(first) ? first['context'] : undefined
  const library = context['library'] ?? (isObject(own) ? own['library'] : undefined)
  if (!isObject(library)) return null
  const parts = [library['name'], library['version']].filter(isText)
  return parts.length === 0 ? null : shown(parts.join(' '))
}

const isText = (value: Json | undefined) => typeof value === 'string'

const shown = (text: string) => text.slice(0, shownMax).toWellFormed()

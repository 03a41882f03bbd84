// Normalises a raw call from its text: the message that normalise.ts comes to by parsing, at a fraction of the cost,
// for calls that are written and filled in as nearly all are. It judges nothing: any other call is left to that.
import { backslash, type Line, lookFor, openBrace, quote, readFixed } from './fixed-text.ts'
import { type CallType, digestOf, type Message, sentTypes } from './message.ts'
import { propertyBytesMin } from './narrow.ts'
import type { Receipt } from './normalise.ts'
import { futureMaxMs, isoLength, isoOf, readInstant } from './timestamp.ts'

/** A call that came without a request: nothing is known of it but what it says. */
export type TextReceipt = Pick<Receipt, 'source' | 'receivedAt' | 'messageId' | 'limits'>

const context = lookFor(['ip', 'direct', 'library', 'traits'])
const call = lookFor(
  [
    'type',
    'userId',
    'anonymousId',
    'previousId',
    'groupId',
    'event',
    'name',
    'category',
    'properties',
    'traits',
    'context',
    'integrations',
    'messageId',
    'timestamp',
    'originalTimestamp',
    'sentAt',
    'receivedAt',
    'writeKey',
  ],
  { context },
)
type Name = Parameters<typeof call.startOf>[0]

/** Which change what is made of a call in ways that only normalise.ts knows. */
const unusual = ['originalTimestamp', 'sentAt', 'receivedAt', 'writeKey'] as const
const maps = ['properties', 'traits', 'context', 'integrations'] as const
const texts = ['name', 'category'] as const

/** Written behind the call itself, at most: times, a message id, a context. */
const addedBytesMax = 512

/** `null`: it is not such a call. */
export const normaliseText = (line: Line, receipt: TextReceipt): Message | null => {
  const { limits, receivedAt } = receipt
  const length = line.end - line.start
  const isSmall =
    length + addedBytesMax <= Math.min(limits.callBytesMax, limits.propertiesMax * propertyBytesMin)
  if (!isSmall || !readFixed(line, call, limits.depthMax) || !isUsual(line)) return null
  const type = typeOf(line)
  const ids = type === null ? null : idsOf(line, type, limits.idLengthMax)
  if (type === null || ids === null) return null
  const event = type === 'track' ? textOf(line, 'event') : null
  if (type === 'track' && event === null) return null
  const times = timesOf(line, receivedAt)
  const messageId = messageIdOf(line, receipt)
  if (times === null || messageId === null) return null
  const { workspaceId, id: sourceId } = receipt.source
  return {
    messageId,
    digest: digestOf({ workspaceId, sourceId, messageId }),
    type,
    workspaceId,
    sourceId,
    userId: ids.userId,
    anonymousId: ids.anonymousId,
    previousId: ids.previousId,
    groupId: ids.groupId,
    event,
    timestamp: times.timestamp,
    originalTimestamp: times.timestamp,
    sentAt: null,
    receivedAt,
    body: bodyOf(line, messageId, times),
    filtered: null,
  }
}

const isUsual = ({ bytes }: Line): boolean => {
  for (const name of unusual) if (call.isFound(name)) return false
  for (const name of maps)
    if (call.isFound(name) && bytes[call.startOf(name)] !== openBrace) return false
  for (const name of texts)
    if (call.isFound(name) && bytes[call.startOf(name)] !== quote) return false
  if (!call.isFound('context')) return true
  if (context.isFound('ip') || context.isFound('direct')) return false
  // Traits of an identify call may stand there; a library that says nothing is replaced.
  if (context.isFound('traits') && !call.isFound('traits')) return false
  return !context.isFound('library') || bytes[context.startOf('library')] === openBrace
}

/** A text as it stands, neither escaped nor empty; `null`: it is none, or missing. */
const textOf = ({ bytes }: Line, name: Name): string | null => {
  const start = call.startOf(name) + 1
  const end = call.endOf(name) - 1
  if (start === 0 || end <= start || bytes[start - 1] !== quote) return null
  let isAscii = true
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at] as number
    if (byte === backslash) return null
    if (byte > 0x7f) isAscii = false
  }
  return bytes.toString(isAscii ? 'latin1' : 'utf8', start, end)
}

const collected: ReadonlyMap<string, CallType> = new Map(sentTypes.map((type) => [type, type]))

const typeOf = (line: Line): CallType | null => collected.get(textOf(line, 'type') ?? '') ?? null

type Ids = Pick<Message, 'userId' | 'anonymousId' | 'previousId' | 'groupId'>

/** `undefined`: there is one that is no text. */
const idOf = (line: Line, name: Name, lengthMax: number): string | null | undefined => {
  if (!call.isFound(name)) return null
  const id = textOf(line, name)
  return id === null || id.length > lengthMax ? undefined : id
}

const idsOf = (line: Line, type: CallType, lengthMax: number): Ids | null => {
  const userId = idOf(line, 'userId', lengthMax)
  const anonymousId = idOf(line, 'anonymousId', lengthMax)
  const previousId = idOf(line, 'previousId', lengthMax)
  const groupId = idOf(line, 'groupId', lengthMax)
  if (userId === undefined || anonymousId === undefined) return null
  if (previousId === undefined || groupId === undefined) return null
  if (userId === null && anonymousId === null) return null
  if (type === 'group' && groupId === null) return null
  if (type === 'alias' && (previousId === null || userId === null)) return null
  return { userId, anonymousId, previousId, groupId }
}

const messageIdOf = (line: Line, { messageId, limits }: TextReceipt): string | null => {
  if (!call.isFound('messageId')) return messageId()
  const own = textOf(line, 'messageId')
  return own === null || own.length > limits.messageIdLengthMax ? null : own
}

type Times = { readonly timestamp: number; readonly text: string; readonly received: string }

/** As JavaScript writes instants, and none that would be mended. */
const timesOf = (line: Line, receivedAt: number): Times | null => {
  const received = isoOf(receivedAt)
  if (!call.isFound('timestamp')) return { timestamp: receivedAt, text: received, received }
  const text = textOf(line, 'timestamp')
  if (text === null || text.length !== isoLength) return null
  const timestamp = readInstant(text)
  if (timestamp === null || timestamp < 0 || timestamp > receivedAt + futureMaxMs) return null
  return isoOf(timestamp) === text ? { timestamp, text, received } : null
}

/** One allocation for many: each is small, and soon written elsewhere. */
const slabBytes = 65_536
let slab = Buffer.alloc(0)
let used = 0

const library = '"library":{"name":"http","version":"v1"}'

/** The call as it stands, and behind it what it lacks, in the order in which normalise.ts adds it. */
const bodyOf = ({ bytes, start, end }: Line, messageId: string, times: Times): Buffer => {
  const { timestamp: _, text, received } = times
  const hasContext = call.isFound('context')
  let tail = ''
  if (!call.isFound('messageId')) tail += `,"messageId":${JSON.stringify(messageId)}`
  if (!hasContext) tail += `,"context":{${library}}`
  if (!call.isFound('timestamp')) tail += `,"timestamp":"${text}"`
  tail += `,"originalTimestamp":"${text}","receivedAt":"${received}"}`
  const most = end - start + library.length + 1 + tail.length * 3
  if (used + most > slab.length) {
    slab = Buffer.allocUnsafeSlow(Math.max(slabBytes, most))
    used = 0
  }
  const first = used
  if (hasContext && !context.isFound('library')) {
    const behind = call.endOf('context') - 1
    const isEmpty = bytes[behind - 1] === openBrace
    used += bytes.copy(slab, used, start, behind)
    used += slab.write(isEmpty ? library : `,${library}`, used, 'latin1')
    used += bytes.copy(slab, used, behind, end - 1)
  } else used += bytes.copy(slab, used, start, end - 1)
  used += slab.write(tail, used)
  return slab.subarray(first, used)
}

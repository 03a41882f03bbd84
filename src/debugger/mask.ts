// What the debugger shows of a call: its shape, without what it says about anybody. Pure, and bounded in its size.
import { isObject, type Json, type JsonObject } from '../domain/message.ts'
import { hidden, hiddenId, shown, shownPath } from './scrub.ts'

export const maskLimits = {
  /** Of the masked call as JSON. */
  bytesMax: 8_192,
  depthMax: 8,
  keysMax: 100,
  itemsMax: 20,
}

export type Masked = {
  readonly call: Json
  /** It had more than fits. */
  readonly isCut: boolean
}

/**
 * How a value is shown. `leaf`: its length, or itself where it is a small number or a boolean; in a
 * map or a list, the same for all that is in it. `text`: as it is, scrubbed.
 */
type Rule =
  | 'leaf'
  | 'text'
  | 'path'
  | 'id'
  | 'message'
  | 'time'
  | 'whole'
  | { readonly [key: string]: Rule }

/** What is not named here is shown as a leaf: new fields are private until somebody decides otherwise. */
const callRule: Rule = {
  type: 'text',
  channel: 'text',
  version: 'text',
  event: 'text',
  timestamp: 'time',
  originalTimestamp: 'time',
  sentAt: 'time',
  receivedAt: 'time',
  messageId: 'message',
  userId: 'id',
  anonymousId: 'id',
  previousId: 'id',
  groupId: 'id',
  properties: { path: 'path' },
  context: {
    library: { name: 'text', version: 'text' },
    app: { name: 'text', version: 'text', build: 'text', namespace: 'text' },
    os: { name: 'text', version: 'text' },
    device: { type: 'text' },
    page: { path: 'path' },
    groupId: 'id',
  },
}

/** Of a page or a screen the name is the page's; of any other call it is as good as a trait. */
const pageRule: Rule = { ...callRule, name: 'text', category: 'text' }

/** Whatever stands under such a key, its length would tell too much. */
const secretKey =
  /pass(?:word|wd|phrase|code)|secret|token|api[_-]?key|write[_-]?key|private[_-]?key|authori[sz]ation|credential|cookie|signature|cvv|cvc|ssn|iban|^(?:pin|otp|pwd)$|[_-](?:pin|otp|pwd)$/i

/** Numbers under such a key are of a person, however short. */
const personalKey =
  /phone|mobile|fax|zip|post(?:al)?[_-]?code|birth|^dob$|^lat$|^lng$|^lon$|latitude|longitude|coord|address|passport|tax|card|account/i

const idKey = /(?:^|[a-z_-])(?:id|Id|ID|uid|uuid)$/

/** As JSON no longer than its limit, whatever the call is. */
export const maskCall = (call: Json, limits = maskLimits): Masked => {
  const walk: Walk = { limits, left: limits.bytesMax, isCut: false }
  const masked = maskValue(call, ruleOf(call), { walk, depth: 0 })
  return { call: masked ?? null, isCut: walk.isCut }
}

const ruleOf = (call: Json): Rule => {
  if (!isObject(call)) return 'leaf'
  return call['type'] === 'page' || call['type'] === 'screen' ? pageRule : callRule
}

/** A random id is nobody's; one that somebody thought up may be. */
export const shownMessageId = (messageId: string): string =>
  /^(?:(?:ajs|node)-(?:next-)?\d{13}-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(
    messageId,
  )
    ? messageId
    : hiddenId(messageId)

type Walk = {
  readonly limits: typeof maskLimits
  /** Bytes that may still be written. */
  left: number
  isCut: boolean
}

type At = { readonly walk: Walk; readonly depth: number }

/** `undefined` when there was no room for it. */
const maskValue = (value: Json, rule: Rule, at: At): Json | undefined => {
  if (typeof value !== 'object' || value === null)
    return spend(at.walk, maskLeaf(value, typeof rule === 'string' ? rule : 'leaf'))
  if (rule === 'whole') return spend(at.walk, '…')
  const isList = Array.isArray(value)
  if (at.depth >= at.walk.limits.depthMax)
    return spend(at.walk, isList ? `… a list of ${value.length}` : '… a map')
  if (at.walk.left < 2) return cut(at.walk)
  at.walk.left -= 2
  const inside = { walk: at.walk, depth: at.depth + 1 }
  return isList ? maskList(value, inside) : maskMap(value as JsonObject, rule, inside)
}

const maskList = (list: readonly Json[], at: At): Json => {
  const { walk } = at
  const masked: Json[] = []
  for (const item of list) {
    if (masked.length >= walk.limits.itemsMax) {
      const note = spend(walk, `… ${list.length - masked.length} more`)
      if (note !== undefined) masked.push(note)
      break
    }
    walk.left -= 1
    const one = maskValue(item, 'leaf', at)
    if (one === undefined) break
    masked.push(one)
  }
  return masked
}

const maskMap = (map: JsonObject, rule: Rule, at: At): Json => {
  const { walk } = at
  const masked = new Map<string, Json>()
  for (const key in map) {
    if (!Object.hasOwn(map, key)) continue
    const isFull = masked.size >= walk.limits.keysMax
    const name = isFull ? '…' : nameFor(masked, shown(key))
    walk.left -= 2
    if (spend(walk, name) === undefined) break
    const one = isFull
      ? spend(walk, 'more keys')
      : maskValue(map[key] as Json, ruleFor(rule, key, map[key] as Json), at)
    if (one === undefined) break
    masked.set(name, one)
    if (isFull) break
  }
  return Object.fromEntries(masked)
}

/** Two keys may look the same once they are masked. */
const nameFor = (taken: ReadonlyMap<string, Json>, name: string): string => {
  let free = name
  for (let count = 2; taken.has(free); count += 1) free = `${name} (${count})`
  return free
}

const ruleFor = (rule: Rule, key: string, value: Json): Rule => {
  if (typeof rule === 'object' && Object.hasOwn(rule, key)) return rule[key] as Rule
  if (secretKey.test(key)) return 'whole'
  if (typeof value === 'string' && idKey.test(key)) return 'id'
  return typeof value === 'number' && personalKey.test(key) ? 'whole' : 'leaf'
}

type Leaf = null | boolean | number | string

const maskLeaf = (value: Leaf, rule: Exclude<Rule, object>): Leaf => {
  if (value === null || typeof value === 'boolean') return value
  const text = String(value)
  switch (rule) {
    case 'whole':
      return '…'
    case 'id':
      return hiddenId(text)
    case 'message':
      return shownMessageId(text)
    case 'leaf':
      return typeof value === 'number' ? maskNumber(value) : hidden(text)
    case 'text':
      return typeof value === 'number' ? maskNumber(value) : shown(text)
    case 'path':
      return typeof value === 'number' ? maskNumber(value) : shownPath(text)
    case 'time':
      return isInstant(text) ? text : typeof value === 'number' ? maskNumber(value) : hidden(text)
  }
}

const isInstant = (text: string): boolean =>
  /^[12]\d{3}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\d(?:\.\d{1,9})?(?:Z|[+-][01]\d:?[0-5]\d)?$/.test(
    text,
  )

/** As many digits as a telephone number has. */
const digitsMax = 6

const maskNumber = (value: number): Leaf => {
  const digits = String(value).replace(/e.*$/, '').replace(/\D/g, '').replace(/^0+/, '')
  return digits.length > digitsMax ? `… ${digits.length} digits` : value
}

const spend = <T extends Leaf>(walk: Walk, leaf: T): T | undefined => {
  const cost = Buffer.byteLength(JSON.stringify(leaf))
  if (cost > walk.left) return cut(walk)
  walk.left -= cost
  return leaf
}

const cut = (walk: Walk): undefined => {
  walk.isCut = true
}

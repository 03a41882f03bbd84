// The JSON form of conditions and measures, written as text that reads back to the same.
import type { Json, JsonObject } from '../../message.ts'
import { spanOperators } from '../date.ts'
import { normalCondition, normalMeasure } from '../normal.ts'
import { readPath, writePath } from '../path.ts'
import { listOperators, presenceOperators } from '../value.ts'
import { signOf } from './comparison.ts'
import { quoted } from './token.ts'

/** Of a condition that is sound; it may hold references. */
export const printCondition = (json: JsonObject): string => whole(normalCondition(json))

const whole = (json: JsonObject): string => {
  const users = json['users'] as JsonObject | undefined
  if (users === undefined) return tree(json, { printLeaf, within: 'any' })
  const { quantifier, identified, where } = users as { readonly [key: string]: Json }
  const who = `${String(quantifier).toUpperCase()}${identified === true ? ' IDENTIFIED' : ''} USERS`
  return `${who} (${whole(where as JsonObject)})`
}

/** Of a computed trait. */
export const printMeasure = (json: JsonObject): string => measure(normalMeasure(json))

type Printing = {
  readonly printLeaf: (leaf: JsonObject) => string
  readonly within: 'any' | 'all' | 'not'
}

const binding = { any: 0, all: 1, not: 2 } as const

const tree = (json: JsonObject, { printLeaf: print, within }: Printing): string => {
  if (Object.hasOwn(json, 'not'))
    return `NOT ${tree(json['not'] as JsonObject, { printLeaf: print, within: 'not' })}`
  const kind = (['any', 'all'] as const).find((each) => Object.hasOwn(json, each))
  if (kind === undefined) return print(json)
  const text = (json[kind] as readonly JsonObject[])
    .map((child) => tree(child, { printLeaf: print, within: kind }))
    .join(kind === 'all' ? ' AND ' : ' OR ')
  return binding[kind] < binding[within] ? `(${text})` : text
}

const printLeaf = (leaf: JsonObject): string => {
  if (Object.hasOwn(leaf, 'trait')) return `trait(${path(leaf['trait'])})${comparison(leaf)}`
  if (Object.hasOwn(leaf, 'computed'))
    return `computed(${quoted(leaf['computed'] as string)})${comparison(leaf)}`
  if (Object.hasOwn(leaf, 'audience')) return `audience(${quoted(leaf['audience'] as string)})`
  if (Object.hasOwn(leaf, 'identified')) return 'identified()'
  if (Object.hasOwn(leaf, 'sequence')) return sequence(leaf['sequence'] as JsonObject)
  if (!Object.hasOwn(leaf, 'compare')) return `${measure(leaf)}${comparison(madeOf(leaf)[1])}`
  const [left, right] = leaf['compare'] as readonly [JsonObject, JsonObject]
  return `${measure(left)} ${signOf(leaf['op'] as string)} ${measure(right)}`
}

const madeOf = ({ event: _event, ...rest }: JsonObject): readonly [string, JsonObject] =>
  Object.entries(rest)[0] as [string, JsonObject]

const measure = (json: JsonObject): string => {
  const [reducer, made] = madeOf(json)
  const { prop, min_frequency: frequency, timezone } = made
  const parts = [
    ...(prop === undefined ? [] : [`property(${path(prop)})`]),
    ...(frequency === undefined ? [] : [String(frequency)]),
    ...(reducer === 'distinct_days' && timezone !== undefined ? [quoted(timezone as string)] : []),
  ]
  return `${events(json['event'] as JsonObject)}.${reducer}(${parts.join(', ')})`
}

const events = ({ name, where, window }: JsonObject): string =>
  [
    `event(${quoted(name as string)})`,
    where === undefined ? '' : `.where(${filter(where as JsonObject)})`,
    window === undefined ? '' : windowText(window as JsonObject),
  ].join('')

const filter = (json: JsonObject): string =>
  tree(json, {
    printLeaf: (leaf) => `property(${path(leaf['prop'])})${comparison(leaf)}`,
    within: 'any',
  })

const windowText = (window: JsonObject): string => {
  const { last, between_ago: ages, calendar_days: days, grid } = window
  const gridText = grid === undefined ? '' : `, grid: ${duration(grid)}`
  const [from, until] = (ages ?? []) as readonly Json[]
  const dated = (['after', 'before', 'timezone'] as const).flatMap((key) =>
    window[key] === undefined ? [] : [`.${key}(${quoted(window[key] as string)})`],
  )
  return [
    last === undefined ? '' : `.within(${duration(last)}${gridText})`,
    from === undefined ? '' : `.between(${duration(from)}, ${duration(until)}${gridText})`,
    days === undefined ? '' : `.calendar_days(${days})`,
    ...dated,
  ].join('')
}

const unitNames: Readonly<Record<string, string>> = {
  s: 'second',
  m: 'minute',
  h: 'hour',
  d: 'day',
}

/** "30d" as "30 days". */
const duration = (text: Json | undefined): string => {
  const [, count, unit] = /^(\d+)(.)$/.exec(String(text)) ?? []
  return `${count} ${unitNames[unit ?? '']}${count === '1' ? '' : 's'}`
}

const path = (written: Json | undefined): string => {
  const text = writePath(readPath(written) ?? [])
  return typeof text === 'string' ? quoted(text) : `[${text.map(quoted).join(', ')}]`
}

const comparison = (json: JsonObject): string => {
  const { op, value, ref, ci, timezone } = json as JsonObject & { readonly op: string }
  // Of distinct_days the time zone is of the days, and stands there.
  const dated = Object.hasOwn(json, 'prop') || Object.hasOwn(json, 'trait') || computed(json)
  const modifiers = [
    ci === true ? '.ignore_case()' : '',
    timezone !== undefined && dated ? `.timezone(${quoted(timezone as string)})` : '',
  ].join('')
  const sign = signOf(op)
  if (sign !== undefined)
    return `${modifiers} ${sign} ${ref === undefined ? literal(value as Json) : operand(ref)}`
  return `${modifiers}.${op}(${argument(op, value)})`
}

const computed = (json: JsonObject): boolean => Object.hasOwn(json, 'computed')

const argument = (op: string, value: Json | undefined): string => {
  if ((presenceOperators as readonly string[]).includes(op)) return ''
  if ((spanOperators as readonly string[]).includes(op)) return duration(value)
  if ((listOperators as readonly string[]).includes(op))
    return (value as readonly Json[]).map(literal).join(', ')
  return literal(value as Json)
}

const literal = (value: Json): string =>
  typeof value === 'string' ? quoted(value) : JSON.stringify(value)

const operand = (ref: Json): string => {
  if (typeof ref === 'string') {
    const [, kind, rest = ''] = /^(trait|computed):(.*)$/s.exec(ref) ?? []
    if (kind === 'trait') return `trait(${path(rest)})`
    if (kind === 'computed') return `computed(${quoted(rest)})`
    const [, step, of = ''] = /^([^.]+)\.prop\.(.*)$/s.exec(ref) ?? []
    return `property(${step}: ${path(of)})`
  }
  const made = ref as JsonObject
  if (Object.hasOwn(made, 'trait')) return `trait(${path(made['trait'])})`
  if (Object.hasOwn(made, 'step')) return `property(${made['step']}: ${path(made['prop'])})`
  return measure(made)
}

const sequence = ({ steps, window, settle }: JsonObject): string => {
  const texts = (steps as readonly JsonObject[]).map((step, index) =>
    [
      index === 0 ? '' : step['then'] === 'did_not' ? 'did_not ' : 'did ',
      events(step['event'] as JsonObject),
      index === 0 && window !== undefined ? windowText(window as JsonObject) : '',
      step['as'] === undefined ? '' : ` as ${step['as']}`,
      step['within'] === undefined ? '' : ` within ${duration(step['within'])}`,
    ].join(''),
  )
  const settled = settle === undefined ? '' : `.settle(${settle})`
  return `sequence(${texts.join(', ')})${settled}`
}

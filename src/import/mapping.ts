// What a mapping says: which column of a table becomes what of a call. Checked whole before a line is read.
import { isObject, type Json, type JsonObject, sentTypes } from '../domain/message.ts'
import { type Converter, convertersOf, type ValueType, valueTypes } from './value.ts'

export type Path = readonly string[]

export type Mapped = { readonly column: number; readonly path: Path; readonly convert: Converter }

export type Mapping = {
  readonly constants: readonly { readonly path: Path; readonly value: Json }[]
  readonly mapped: readonly Mapped[]
}

export type MappingProblem = {
  /** JSON pointer into the mapping. */
  readonly path: string
  readonly message: string
}

type Compiled = Mapping | { readonly problems: readonly MappingProblem[] }

const fields = ['columns', 'constants', 'delimiter', 'type'] as const
const collected: readonly string[] = sentTypes

/** Whole values of a call, and maps that hold more under dots. */
const plain = [
  'type',
  'userId',
  'anonymousId',
  'previousId',
  'groupId',
  'event',
  'name',
  'category',
  'messageId',
  'timestamp',
]
const maps = ['properties', 'traits', 'context', 'integrations']

export const compileMapping = (given: unknown, columns: readonly string[]): Compiled => {
  if (!isObject(given as Json))
    return { problems: [{ path: '', message: 'a mapping is an object with "type" and "columns"' }] }
  const spec = given as JsonObject
  const problems: MappingProblem[] = []
  const tell = (path: string, message: string) => void problems.push({ path, message })
  for (const name of Object.keys(spec))
    if (!fields.some((field) => field === name))
      tell(`/${escaped(name)}`, `"${name}" is none of ${fields.join(', ')}`)
  checkDelimiter(spec['delimiter'], tell)
  const constants = constantsOf(spec, tell)
  const mapped = mappedOf(spec['columns'], columns, tell)
  checkPaths([...constants, ...mapped], tell)
  return problems.length > 0 ? { problems } : { constants, mapped }
}

type Tell = (path: string, message: string) => void

const checkDelimiter = (given: Json | undefined, tell: Tell) => {
  if (given === undefined) return
  if (typeof given !== 'string' || !/^[\t -~]$/.test(given) || given === '"')
    tell('/delimiter', 'a delimiter is one ASCII character, and no quote')
}

const constantsOf = (spec: JsonObject, tell: Tell): Mapping['constants'] => {
  const { type, constants } = spec
  const made: { path: Path; value: Json }[] = []
  if (type !== undefined) {
    if (typeof type === 'string' && collected.includes(type))
      made.push({ path: ['type'], value: type })
    else tell('/type', `"type" is one of ${collected.join(', ')}`)
  }
  if (constants === undefined) return made
  if (!isObject(constants)) {
    tell('/constants', '"constants" is an object: where in the call, and which value')
    return made
  }
  for (const [to, value] of Object.entries(constants)) {
    const path = readPath(to)
    if (typeof path === 'string') tell(`/constants/${escaped(to)}`, path)
    else made.push({ path, value })
  }
  return made
}

const mappedOf = (given: Json | undefined, columns: readonly string[], tell: Tell): Mapped[] => {
  if (!isObject(given) || Object.keys(given).length === 0) {
    tell('/columns', '"columns" is an object: the name of a column, and where in the call it goes')
    return []
  }
  const mapped: Mapped[] = []
  for (const [name, value] of Object.entries(given)) {
    const at = `/columns/${escaped(name)}`
    const column = columns.indexOf(name)
    if (column < 0)
      tell(
        at,
        `the file has no column "${name}"; it has ${columns.map((one) => `"${one}"`).join(', ')}${hintOf(columns)}`,
      )
    else if (columns.indexOf(name, column + 1) >= 0)
      tell(at, `the file has several columns "${name}"`)
    const target = targetOf(value)
    if (typeof target === 'string') tell(at, target)
    else if (column >= 0) mapped.push({ column, ...target })
  }
  return mapped
}

/** Where all columns were taken for one. */
const hintOf = ([first = '', ...others]: readonly string[]): string => {
  const found = others.length === 0 ? /[;,\t|]/.exec(first)?.[0] : undefined
  return found === undefined
    ? ''
    : `. If they are divided by ${found === '\t' ? 'tabs' : `"${found}"`}, say in the mapping: delimiter: ${JSON.stringify(found)}`
}

const escaped = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1')

type Target = Pick<Mapped, 'path' | 'convert'>

/** `"userId"`, or `{"to": "properties.price", "type": "number"}`. */
const targetOf = (given: Json): Target | string => {
  const spec = typeof given === 'string' ? { to: given } : given
  if (!isObject(spec) || typeof spec['to'] !== 'string')
    return 'say where it goes: "userId", or {"to": "properties.price", "type": "number"}'
  const unknown = Object.keys(spec).find((name) => name !== 'to' && name !== 'type')
  if (unknown !== undefined) return `"${unknown}" is none of to, type`
  const path = readPath(spec['to'])
  if (typeof path === 'string') return path
  const type = spec['type'] ?? (spec['to'] === 'timestamp' ? 'time' : 'string')
  if (!valueTypes.some((known) => known === type))
    return `"type" is one of ${valueTypes.join(', ')}`
  return { path, convert: convertersOf[type as ValueType] }
}

const readPath = (to: string): Path | string => {
  const path = to.split('.')
  const [first = ''] = path
  if (path.length === 1 && plain.includes(first)) return path
  if (
    path.length > 1 &&
    maps.includes(first) &&
    path.every((step) => step !== '' && step !== '__proto__')
  )
    return path
  return `"${to}" is no place in a call: use ${plain.join(', ')}, or a name under ${maps.map((name) => `${name}.`).join(', ')}`
}

const checkPaths = (all: readonly { readonly path: Path }[], tell: Tell) => {
  const taken = all.map(({ path }) => path.join('.'))
  for (const [index, name] of taken.entries()) {
    const other = taken.find(
      (one, at) => (at > index && one === name) || (at !== index && one.startsWith(`${name}.`)),
    )
    if (other === name) tell('/columns', `"${name}" is said twice`)
    else if (other !== undefined)
      tell('/columns', `"${name}" cannot hold "${other}" and a value too`)
  }
  const has = (name: string) => taken.includes(name)
  if (!has('type')) tell('/type', 'say the "type" of the calls, or map a column to it')
  if (!has('userId') && !has('anonymousId'))
    tell('/columns', 'map a column to "userId" or "anonymousId"')
}

// Checks a value against its TypeBox schema and says every problem in words, with the path to each.
import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { Settings } from 'typebox/system'
import { at, type Problem } from './problem.ts'

export type Check<T> = (value: unknown) => { readonly value: T } | { readonly problems: Problem[] }

const problemsMax = 200

export const checkOf = <S extends TSchema>(schema: S): Check<Static<S>> => {
  const validator = Compile(schema)
  return (value) => {
    if (validator.Check(value)) return { value: value as Static<S> }
    Settings.Set({ maxErrors: problemsMax })
    return { problems: wordsOf(validator.Errors(value)) }
  }
}

type SchemaError = {
  readonly keyword: string
  readonly instancePath: string
  readonly params: object
  readonly message: string
}

const wordsOf = (errors: readonly SchemaError[]): Problem[] => {
  // A failed union reports each branch and then itself; the branches become one sentence.
  const unions = new Set(
    errors.filter(({ keyword }) => keyword === 'anyOf').map(({ instancePath }) => instancePath),
  )
  return errors.flatMap((error, index): Problem[] => {
    const { keyword, instancePath: path, params } = error
    if (keyword === 'boolean') return []
    if (keyword === 'additionalProperties') return unknownFields(errors, error)
    if (keyword === 'required') return missingFields(path, params)
    if (keyword === 'anyOf') {
      // A union within a union is one choice.
      const first = errors.findIndex(
        (each) => each.keyword === 'anyOf' && each.instancePath === path,
      )
      if (first !== index || isToldBelow(errors, path)) return []
      return [invalid(path, choiceOf(errors, path))]
    }
    if (unions.has(path)) return []
    return [invalid(path, error.message)]
  })
}

const invalid = (path: string, message: string): Problem => ({
  code: 'field_invalid',
  path,
  message: `${path === '' ? 'the value' : path} ${message}`,
})

const unknownFields = (errors: readonly SchemaError[], error: SchemaError): Problem[] => {
  const { instancePath: path, params } = error
  const { additionalProperties = [] } = params as { additionalProperties?: readonly string[] }
  return additionalProperties
    .map((name) => ({
      code: 'field_unknown' as const,
      path: at(path, name),
      message: `there is no field "${name}" here`,
    }))
    .filter((problem) => !isToldOf(errors, problem.path))
}

/** Where any name may stand, the value under it is at fault, and has its own problem. */
const isToldOf = (errors: readonly SchemaError[], path: string): boolean =>
  errors.some(({ keyword, instancePath }) => keyword !== 'boolean' && instancePath === path)

const missingFields = (path: string, params: object): Problem[] => {
  const { requiredProperties = [] } = params as { requiredProperties?: readonly string[] }
  return requiredProperties.map((name) => ({
    code: 'field_missing',
    path: at(path, name),
    message: `the field "${name}" is required`,
  }))
}

/** A branch that went deeper, or knew the fields, says more than the union of them all. */
const isToldBelow = (errors: readonly SchemaError[], path: string): boolean =>
  errors.some(
    ({ keyword, instancePath }) =>
      instancePath.startsWith(`${path}/`) ||
      (instancePath === path && (keyword === 'required' || keyword === 'additionalProperties')),
  )

const choiceOf = (errors: readonly SchemaError[], path: string): string => {
  const here = errors.filter(({ instancePath }) => instancePath === path)
  const choices = here.flatMap(({ keyword, params }) => {
    if (keyword === 'const')
      return [JSON.stringify((params as { allowedValue: unknown }).allowedValue)]
    if (keyword === 'type') return [String((params as { type: unknown }).type)]
    return []
  })
  const bounds = here.filter(({ keyword }) => !['anyOf', 'const', 'type'].includes(keyword))
  if (bounds.length > 0)
    return `${bounds.map(({ message }) => message).join(' and ')}, or be ${choices.join(', ')}`
  return `must be one of: ${choices.join(', ')}`
}

/** An object of these fields and no others. */
export const closed = <P extends TProperties>(properties: P, description?: string): TObject<P> =>
  Type.Object(properties, { additionalProperties: false, ...(description ? { description } : {}) })

export const oneOf = <const T extends string>(values: readonly T[]) =>
  Type.Unsafe<T>(Type.Union(values.map((value) => Type.Literal(value))))

/** A map of any names to strings; TypeBox's record pattern would pass over names with line breaks. */
export const StringMap = Type.Unsafe<Record<string, string>>({
  type: 'object',
  additionalProperties: { type: 'string' },
})

/** An object whose inside somebody else judges. */
export const AnyObject = Type.Unsafe<Record<string, unknown>>({ type: 'object' })

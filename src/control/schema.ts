// Checks a value against its TypeBox schema and says every problem in words, with the path to each.
import Type, { type Static, type TSchema } from 'typebox'
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
  return errors.flatMap((error): Problem[] => {
    const { keyword, instancePath: path, params } = error
    if (keyword === 'boolean') return []
    if (keyword === 'additionalProperties') return unknownFields(path, params)
    if (keyword === 'required') return missingFields(path, params)
    if (keyword === 'anyOf') return [invalid(path, choiceOf(errors, path))]
    if (unions.has(path)) return []
    return [invalid(path, error.message)]
  })
}

const invalid = (path: string, message: string): Problem => ({
  code: 'field_invalid',
  path,
  message: `${path === '' ? 'the value' : path} ${message}`,
})

const unknownFields = (path: string, params: object): Problem[] => {
  const { additionalProperties = [] } = params as { additionalProperties?: readonly string[] }
  return additionalProperties.map((name) => ({
    code: 'field_unknown',
    path: at(path, name),
    message: `there is no field "${name}" here`,
  }))
}

const missingFields = (path: string, params: object): Problem[] => {
  const { requiredProperties = [] } = params as { requiredProperties?: readonly string[] }
  return requiredProperties.map((name) => ({
    code: 'field_missing',
    path: at(path, name),
    message: `the field "${name}" is required`,
  }))
}

const choiceOf = (errors: readonly SchemaError[], path: string): string => {
  const here = errors.filter(({ instancePath }) => instancePath === path)
  const choices = here.flatMap(({ keyword, params }) => {
    if (keyword === 'const')
      return [JSON.stringify((params as { allowedValue: unknown }).allowedValue)]
    if (keyword === 'type') return [String((params as { type: unknown }).type)]
    return []
  })
  return `must be one of: ${choices.join(', ')}`
}

/** A map of any names to strings; TypeBox's record pattern would pass over names with line breaks. */
export const StringMap = Type.Unsafe<Record<string, string>>({
  type: 'object',
  additionalProperties: { type: 'string' },
})

/** An object whose inside somebody else judges. */
export const AnyObject = Type.Unsafe<Record<string, unknown>>({ type: 'object' })

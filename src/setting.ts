// How one setting is written down: its schema, the variable it is read from, and how it is shown.
import { type TSchema, Type } from 'typebox'

/** What the schema carries beside the type: where a value comes from and how it is shown. */
export type Setting = {
  readonly variable: string
  readonly reading: 'text' | 'number' | 'boolean' | 'list'
  /** Completes "must be …". */
  readonly description: string
  /** Grants access: printed as `***`. A URL keeps everything but its password. */
  readonly secret?: 'whole' | 'password'
}

export const setting = <T extends TSchema>(schema: T, about: Setting): T => ({
  ...schema,
  ...about,
})

export const orNull = <T extends TSchema>(schema: T) =>
  Type.Union([schema, Type.Null()], { default: null })

export const integer = (minimum: number, maximum: number, fallback: number) =>
  Type.Integer({ minimum, maximum, default: fallback })

export const number = (variable: string, description: string): Setting => ({
  variable,
  reading: 'number',
  description,
})

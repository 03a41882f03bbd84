// The OpenAPI 3.1 document, made from the very descriptions the routes check and answer by.
import Type, { type TSchema } from 'typebox'
import { problemStatus } from '../control/problem.ts'
import { errorStatus } from './answer.ts'
import type { AnswerDescription, Route } from './route.ts'
import { named } from './views.ts'

type Json = unknown
type Components = Map<string, Json>

const ErrorView = named('Error', {
  error: Type.Object({
    code: Type.String({
      enum: [...Object.keys(errorStatus), ...Object.keys(problemStatus)].sort(),
    }),
    message: Type.String(),
    problems: Type.Optional(
      Type.Array(
        Type.Object({
          code: Type.String(),
          path: Type.String({ description: 'JSON pointer to the value at fault.' }),
          message: Type.String(),
        }),
      ),
    ),
  }),
})

export const documentOf = (routes: readonly Route[], version: string) => {
  const components: Components = new Map()
  const paths: Record<string, Record<string, Json>> = {}
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, components) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Millrace admin API',
      version,
      summary: 'Configure Millrace, run syncs, see users and deliveries.',
      license: { name: 'Apache 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }],
    paths,
    components: {
      schemas: Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
    },
  }
}

const operationOf = (route: Route, components: Components): Json => ({
  operationId: route.operation,
  summary: route.summary,
  tags: [route.path.split('/')[3] ?? 'operations'],
  ...(route.access === 'open' ? { security: [] } : {}),
  ...(route.access === 'admin' ? { description: 'Needs a token of role admin.' } : {}),
  parameters: [
    ...parametersOf(route.params, 'path', components),
    ...parametersOf(route.query, 'query', components),
    ...(route.resumes ? [lastEventId] : []),
    ...(route.idempotent ? [idempotencyKey] : []),
  ],
  ...(route.body ? { requestBody: bodyOf(route, components) } : {}),
  ...(route.raw ? { requestBody: rawBody } : {}),
  responses: {
    ...Object.fromEntries(
      Object.entries(route.answers).map(([status, answer]) => [
        status,
        answerOf(answer, components),
      ]),
    ),
    default: {
      description: 'Refused or failed.',
      content: { 'application/json': { schema: hoist(ErrorView, components) } },
    },
  },
})

const rawBody: Json = {
  required: true,
  content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } },
}

const idempotencyKey: Json = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'With the key and the body of an earlier request this one answers as that did, and makes nothing; with another body it is refused.',
  schema: { type: 'string', maxLength: 255 },
}

const lastEventId: Json = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description: 'The id of the last event that was received: the stream goes on after it.',
  schema: { type: 'string' },
}

type ObjectSchema = TSchema & {
  readonly properties: Readonly<Record<string, TSchema & { readonly description?: string }>>
  readonly required?: readonly string[]
}

const parametersOf = (
  schema: TSchema | undefined,
  place: 'path' | 'query',
  components: Components,
): readonly Json[] => {
  if (!schema) return []
  const { properties, required = [] } = schema as ObjectSchema
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    schema: hoist(property, components),
  }))
}

const bodyOf = (route: Route, components: Components): Json => {
  const content = { schema: hoist(route.body, components) }
  return {
    required: route.bodyOptional !== true,
    content: {
      'application/json': content,
      ...(route.yaml ? { 'application/yaml': content } : {}),
    },
  }
}

const answerOf = (
  { description, schema, contentType }: AnswerDescription,
  components: Components,
): Json => ({
  description,
  ...(schema || contentType
    ? {
        content: {
          [contentType ?? 'application/json']: {
            schema: schema ? hoist(schema, components) : { type: 'string' },
          },
        },
      }
    : {}),
})

/** Schemas with a title move to the components, once, and are referred to. */
const hoist = (schema: unknown, components: Components): Json => {
  if (Array.isArray(schema)) return schema.map((part) => hoist(part, components))
  if (typeof schema !== 'object' || schema === null) return schema
  const plain = Object.fromEntries(
    Object.entries(schema).map(([key, part]) => [key, hoist(part, components)]),
  )
  const { title } = plain as { title?: unknown }
  if (typeof title !== 'string') return plain
  components.set(title, plain)
  return { $ref: `#/components/schemas/${title}` }
}

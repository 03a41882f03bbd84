// What a route of the admin API is: one description that checks, documents and answers.
import Type, { type Static, type TObject, type TSchema } from 'typebox'
import type { Problem } from '../control/problem.ts'
import { checkOf } from '../control/schema.ts'
import type { Role } from '../control/token.ts'
import { type Answer, refusal } from './answer.ts'

export type Actor = { readonly name: string; readonly role: Role }

/** `open` needs no token; `viewer` reads, `admin` does everything. */
export type Access = 'open' | Role

export type Description = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** In Fastify's form: `/admin/v1/sources/:id`. */
  readonly path: string
  /** The operation id of the OpenAPI document. */
  readonly operation: string
  readonly summary: string
  readonly access: Access
  readonly params?: TObject
  readonly query?: TObject
  readonly body?: TSchema
  /** The body may be left out. */
  readonly bodyOptional?: boolean
  /** The body may come as YAML too. */
  readonly yaml?: boolean
  readonly answers: Readonly<Record<number, AnswerDescription>>
  /** The body comes as it is, of any type: whole, or as it is being sent. */
  readonly raw?: 'bytes' | 'stream'
  /** The header Idempotency-Key makes a second request the first one again. */
  readonly idempotent?: boolean
  /** A stream that goes on after the event its client heard last. */
  readonly resumes?: boolean
}

export type AnswerDescription = {
  readonly description: string
  readonly schema?: TSchema
  /** application/json when absent. */
  readonly contentType?: string
}

export type Received = {
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
  /** `null` on open routes. */
  readonly actor: Actor | null
  /** The header Last-Event-ID. */
  readonly lastEventId: string | null
  /** The header Idempotency-Key. */
  readonly idempotencyKey?: string | null
  /** Aborts when the client is gone or the process stops; of a stream, also when it ended. */
  readonly signal: AbortSignal
}

export type Route = Description & { answer(received: Received): Promise<Answer> }

type Typed<P extends TObject, Q extends TObject, B extends TSchema> = Omit<
  Description,
  'params' | 'query' | 'body'
> & {
  readonly params?: P
  readonly query?: Q
  readonly body?: B
  handle(request: {
    readonly params: Static<P>
    readonly query: Static<Q>
    readonly body: Static<B>
    readonly actor: Actor
    readonly lastEventId: string | null
    readonly idempotencyKey: string | null
    readonly signal: AbortSignal
  }): Promise<Answer>
}

const nobody: Actor = { name: 'nobody', role: 'viewer' }
const Nothing = Type.Object({}, { additionalProperties: false })

/** Nothing is coerced in a body; parameters arrive as text and are read as their schema asks. */
export const route = <
  P extends TObject = TObject,
  Q extends TObject = TObject,
  B extends TSchema = TSchema,
>(
  typed: Typed<P, Q, B>,
): Route => {
  const checkParams = textCheckOf(typed.params ?? Nothing)
  const checkQuery = textCheckOf(typed.query ?? Nothing)
  const checkBody = typed.raw ? (value: unknown) => ({ value }) : bodyCheckOf(typed)
  return {
    ...typed,
    answer: async (received) => {
      const params = checkParams(received.params)
      const query = checkQuery(received.query)
      const body = checkBody(received.body)
      const problems = [params, query, body].flatMap((checked): readonly Problem[] =>
        'problems' in checked ? checked.problems : [],
      )
      if ('problems' in params || 'problems' in query || 'problems' in body)
        return refusal(problems)
      return typed.handle({
        params: params.value as Static<P>,
        query: query.value as Static<Q>,
        body: body.value as Static<B>,
        actor: received.actor ?? nobody,
        lastEventId: received.lastEventId,
        idempotencyKey: received.idempotencyKey ?? null,
        signal: received.signal,
      })
    },
  }
}

const textCheckOf = (schema: TObject) => {
  const check = checkOf(schema)
  return (value: unknown) =>
    check(
      Object.fromEntries(
        Object.entries(value as object).map(([name, text]) => [
          name,
          readText(text, (schema.properties[name] as { type?: unknown } | undefined)?.type),
        ]),
      ),
    )
}

/** Exactly what the text says or the text itself, which the check then refuses: never a guess. */
const readText = (text: unknown, type: unknown): unknown => {
  if (typeof text !== 'string') return text
  if (type === 'integer' && /^\d{1,15}$/.test(text)) return Number(text)
  if (type === 'boolean' && /^(true|false)$/.test(text)) return text === 'true'
  return text
}

const bodyCheckOf = (description: Pick<Description, 'body' | 'bodyOptional'>) => {
  const check = checkOf(description.body ?? Nothing)
  const mayLack = description.body === undefined || description.bodyOptional === true
  return (value: unknown) =>
    check(value === undefined || value === null ? (mayLack ? {} : value) : value)
}

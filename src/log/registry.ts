// The schema registry: where the schemas of log values are registered and found again by id.
import { COMPATIBILITY, SchemaRegistry, SchemaType } from '@kafkajs/confluent-schema-registry'
import { Fault } from '../fault.ts'

export type Registry = {
  /** Registers a version of the subject, BACKWARD compatible with the last; answers its id. */
  register(subject: string, schema: string): Promise<number>
  /** The last version's schema as JSON text, `null` when the subject has none. */
  latest(subject: string): Promise<string | null>
  /** The schema with this id as JSON text. */
  schema(id: number): Promise<string>
}

export const openRegistry = ({ url }: { readonly url: string }): Registry => {
  const registry = new SchemaRegistry({
    host: url.replace(/\/+$/, ''),
    clientId: 'millrace',
    retry: { retries: 4, initialRetryTimeInSecs: 0.2, maxRetryTimeInSecs: 2 },
  })
  const textOf = async (id: number) => JSON.stringify(await registry.getSchema(id))
  return {
    register: async (subject, schema) => {
      try {
        const compatibility = COMPATIBILITY.BACKWARD
        const value = { type: SchemaType.AVRO as const, schema }
        return (await registry.register(value, { subject, compatibility })).id
      } catch (error) {
        if (isRefusal(error)) throw incompatible(subject, error)
        throw unreachable(url, error)
      }
    },
    latest: async (subject) => {
      try {
        return await textOf(await registry.getLatestSchemaId(subject))
      } catch (error) {
        if (statusOf(error) === 404) return null
        throw unreachable(url, error)
      }
    },
    schema: async (id) => {
      try {
        return await textOf(id)
      } catch (error) {
        if (statusOf(error) !== 404) throw unreachable(url, error)
        const message = `a log value names schema ${id}, which the registry at ${url} does not know`
        throw new Fault('schema_unknown', message, { cause: error })
      }
    },
  }
}

export const incompatible = (subject: string, cause: unknown): Fault =>
  new Fault(
    'schema_incompatible',
    `the schema of ${subject} cannot read what was written by its last registered version ` +
      `(${cause instanceof Error ? cause.message : String(cause)}). Start a release whose schema can, ` +
      `or, when the topic is empty, delete the subject. The subject's compatibility must be BACKWARD.`,
    { cause },
  )

const statusOf = (error: unknown): unknown =>
  typeof error === 'object' && error !== null && 'status' in error ? error.status : undefined

/** 409 and 422 are the registry's; the other is the client's, when the subject demands something else. */
const isRefusal = (error: unknown): boolean =>
  [409, 422].includes(Number(statusOf(error))) ||
  (error instanceof Error && error.name === 'ConfluentSchemaRegistryCompatibilityError')

const unreachable = (url: string, cause: unknown): Fault =>
  new Fault('log_unavailable', `the schema registry at ${url} does not answer`, {
    cause,
    retriable: true,
  })

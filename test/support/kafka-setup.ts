// Whether this run has a broker and a schema registry, and one of each for all its test files.
import type { TestProject } from 'vitest/node'
import { type Broker, startKafka } from './kafka.ts'
import { type Registry, startRegistry } from './registry.ts'

declare module 'vitest' {
  // biome-ignore lint/style/useConsistentTypeDefinitions: merging into vitest's type needs an interface
  export interface ProvidedContext {
    kafkaBrokers: string | null
    registryUrl: string | null
  }
}

/** Nothing starts unless asked for: a plain run needs no Java and stays short. */
export const provideKafka = async (project: TestProject): Promise<() => Promise<void>> => {
  const given = process.env['KAFKA_BROKERS']
  const givenRegistry = process.env['SCHEMA_REGISTRY_URL']
  const wanted = process.env['MILLRACE_TEST_KAFKA'] === '1' || process.env['CI'] === 'true'
  const none = { kafka: null, registry: null }
  const started =
    wanted || given !== undefined
      ? {
          kafka: given === undefined ? await orNone('Kafka broker', startKafka) : null,
          registry:
            givenRegistry === undefined ? await orNone('schema registry', startRegistry) : null,
        }
      : none
  project.provide('kafkaBrokers', given ?? started.kafka?.brokers.join(',') ?? null)
  project.provide('registryUrl', givenRegistry ?? started.registry?.url ?? null)
  return async () => {
    await Promise.all([started.kafka?.stop(), started.registry?.stop()])
  }
}

const orNone = async <T extends Broker | Registry>(
  what: string,
  start: () => Promise<T>,
): Promise<T | null> => {
  try {
    return await start()
  } catch (error) {
    if (process.env['CI'] === 'true') throw error
    console.error(`NO ${what.toUpperCase()}: its suites are skipped. ${String(error)}`)
    return null
  }
}

// One broker and one schema registry for all test files of the run, and one Postgres, where they were asked for.
import type { TestProject } from 'vitest/node'
import { setup as startPostgres } from './global-setup.ts'
import { type Broker, startKafka } from './kafka.ts'
import { type Registry, startRegistry } from './registry.ts'
import { type Stop, startAll } from './stops.ts'

declare module 'vitest' {
  // biome-ignore lint/style/useConsistentTypeDefinitions: merging into vitest's type needs an interface
  export interface ProvidedContext {
    kafkaBrokers: string | null
    registryUrl: string | null
  }
}

export const setup = (project: TestProject): Promise<() => Promise<void>> => {
  const wanted = process.env['MILLRACE_TEST_KAFKA'] === '1' || process.env['CI'] === 'true'
  const givenBrokers = process.env['KAFKA_BROKERS']
  const givenRegistry = process.env['SCHEMA_REGISTRY_URL']
  const isRegistryWanted = wanted || givenBrokers !== undefined
  return startAll(
    () => startPostgres(project),
    async (): Promise<Stop> => {
      const broker =
        wanted && givenBrokers === undefined ? await orNone('Kafka broker', startKafka) : null
      project.provide('kafkaBrokers', givenBrokers ?? broker?.brokers.join(',') ?? null)
      return async () => broker?.stop()
    },
    async (): Promise<Stop> => {
      const registry =
        isRegistryWanted && givenRegistry === undefined
          ? await orNone('schema registry', startRegistry)
          : null
      project.provide('registryUrl', givenRegistry ?? registry?.url ?? null)
      return async () => registry?.stop()
    },
  )
}

/** In CI it must be there; elsewhere its suites are skipped, and that is said. */
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

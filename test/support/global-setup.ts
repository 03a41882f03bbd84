// One throw-away Postgres for the whole test run, with a migrated template that each file clones.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { startPostgres } from '../../src/postgres/embedded.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { openPool } from '../../src/postgres/pool.ts'
import { provideKafka } from './kafka-setup.ts'

declare module 'vitest' {
  // biome-ignore lint/style/useConsistentTypeDefinitions: merging into vitest's type needs an interface
  export interface ProvidedContext {
    postgresUrl: string
  }
}

export const setup = async (project: TestProject): Promise<() => Promise<void>> => {
  const stopKafka = await provideKafka(project)
  const stopPostgres = await providePostgres(project)
  return async () => {
    await stopKafka()
    await stopPostgres()
  }
}

export const providePostgres = async (project: TestProject): Promise<() => Promise<void>> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-test-'))
  const server = await startPostgres({
    dataDir,
    // Nothing in this cluster outlives the run; the crash tests start their own, with fsync on.
    settings: { fsync: 'off', max_connections: '300' },
  })
  const admin = openPool({ url: server.url, connectionsMax: 1, name: 'test' })
  await admin.query('create database template_millrace')
  const template = openPool({
    url: server.url.replace('/postgres?', '/template_millrace?'),
    connectionsMax: 1,
    name: 'test',
  })
  await migrate(template)
  await template.close()
  await admin.close()
  project.provide('postgresUrl', server.url)
  return async () => {
    await server.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

// One throw-away Postgres for the whole test run, with a migrated template that each file clones.
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { type EmbeddedPostgres, startPostgres } from '../../src/postgres/embedded.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { openPool } from '../../src/postgres/pool.ts'
import { removeDataDir } from './process.ts'
import { orStopped } from './stops.ts'

declare module 'vitest' {
  // biome-ignore lint/style/useConsistentTypeDefinitions: merging into vitest's type needs an interface
  export interface ProvidedContext {
    postgresUrl: string
  }
}

export const setup = async (project: TestProject): Promise<() => Promise<void>> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-test-'))
  let server: EmbeddedPostgres | null = null
  const stop = async () => {
    await server?.stop()
    await removeDataDir(dataDir)
  }
  await orStopped(stop, async () => {
    server = await startPostgres({
      dataDir,
      // Nothing in this cluster outlives the run; the crash tests start their own, with fsync on.
      settings: { fsync: 'off', max_connections: '300' },
    })
    await makeTemplate(server.url)
    project.provide('postgresUrl', server.url)
  })
  return stop
}

const makeTemplate = async (url: string): Promise<void> => {
  const admin = openPool({ url, connectionsMax: 1, name: 'test' })
  await admin.query('create database template_millrace')
  await admin.close()
  const template = openPool({
    url: url.replace('/postgres?', '/template_millrace?'),
    connectionsMax: 1,
    name: 'test',
  })
  await migrate(template)
  await template.close()
}

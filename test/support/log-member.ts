// A process that joins a group on the Postgres log and says over IPC what it holds; to be killed.
import { postgresSource } from '../../src/log/postgres.ts'
import { openPool } from '../../src/postgres/pool.ts'

const [url = '', group = ''] = process.argv.slice(2)
const source = postgresSource({ pool: openPool({ url, connectionsMax: 4, name: 'log-member' }) })
let held = 0
source.join({ name: group, topics: ['calls'], bytesMax: 1_000_000 }, async () => {
  held++
  process.send?.(held)
  return { from: 0n, handle: async () => undefined }
})

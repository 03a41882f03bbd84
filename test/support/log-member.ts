// A process that joins a group on the Postgres log and says over IPC what it holds; to be killed, or frozen: told
// so, it stops in the middle of its next beat.
import { postgresSource } from '../../src/log/postgres.ts'
import { openPool } from '../../src/postgres/pool.ts'
import type { Pool } from '../../src/postgres/sql.ts'

const [url = '', group = ''] = process.argv.slice(2)
let freezes = false
process.on('message', () => {
  freezes = true
})
const real = openPool({ url, connectionsMax: 4, name: 'log-member' })
const pool: Pool = {
  ...real,
  connect: (use) =>
    real.connect((connection) =>
      use({
        ...connection,
        query: async (text, values) => {
          const result = await connection.query(text, values)
          if (freezes && text.includes('set beat = beat + 1')) {
            freezes = false
            process.kill(process.pid, 'SIGSTOP')
          }
          return result as never
        },
      }),
    ),
}
const source = postgresSource({ pool })
let held = 0
source.join({ name: group, topics: ['calls'], bytesMax: 1_000_000 }, async ({ lost }) => {
  held++
  process.send?.(held)
  lost.addEventListener('abort', () => {
    held--
    process.send?.(held)
  })
  return { from: 0n, handle: async () => undefined }
})

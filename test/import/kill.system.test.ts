// An import whose command and server are killed with -9, on the log in Postgres.
import { afterAll, test } from 'vitest'
import { postgresSource } from '../../src/log/postgres.ts'
import { findPostgres } from '../../src/postgres/embedded.ts'
import { openPool } from '../../src/postgres/pool.ts'
import { ownFolder } from '../support/folder.ts'
import { type MillraceProcess, removeDataDir, startProcess } from '../support/process.ts'
import { seed } from '../support/seed.ts'
import { killWhileImporting } from './kill-scene.ts'

const kills = Number(process.env['IMPORT_KILLS'] ?? 4)
const lines = Number(process.env['IMPORT_LINES'] ?? 50_000)

const dataDir = await ownFolder('import-kill')
let millrace: MillraceProcess

afterAll(async () => {
  await millrace?.kill9()
  await removeDataDir(dataDir)
})

const openLog = async () => {
  const url = (await findPostgres(dataDir)) ?? ''
  const pool = openPool({ url, connectionsMax: 1, name: 'test' })
  const source = postgresSource({ pool })
  const close = async () => {
    await source.close()
    await pool.close()
  }
  return { ...source, close }
}

test(`every line is imported once, over ${kills} kills of command and server (SEED=${seed})`, async () => {
  const start = async () => {
    millrace = await startProcess({ dataDir, time: 'running' })
    return millrace
  }
  await killWhileImporting({ start, openLog, seed, kills, lines })
}, 600_000)

// Erasing from segments in a folder, killed with -9.
import { test } from 'vitest'
import { openStore } from '../../src/archive/store.ts'
import { cloneDatabase } from '../support/database.ts'
import { seed } from '../support/seed.ts'
import { killWhileErasing } from './erasing-scene.ts'
import { aFolder } from './rig.ts'

test(`killed while it writes segments anew, it leaves nothing of who was deleted, and all of the others (SEED=${seed})`, async () => {
  const { pool, url: databaseUrl } = await cloneDatabase()
  const path = await aFolder()
  const store = openStore({ place: { type: 'folder', path }, credentials: null })
  const env = { MILLRACE_ARCHIVE: path }
  await killWhileErasing({ pool, databaseUrl, store, env, kills: 4, seed })
}, 600_000)

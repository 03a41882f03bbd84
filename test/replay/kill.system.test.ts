// A replay whose process is killed with -9, on the log in Postgres.
import { afterAll, test } from 'vitest'
import { ownFolder } from '../support/folder.ts'
import { type MillraceProcess, removeDataDir, startProcess } from '../support/process.ts'
import { openReceiver } from '../support/receiver.ts'
import { seed } from '../support/seed.ts'
import { killWhileReplaying } from './kill-scene.ts'

const kills = Number(process.env['REPLAY_KILLS'] ?? 2)

const dataDir = await ownFolder('replay-kill')
const receiver = await openReceiver({ secret: 's3cret' })
let millrace: MillraceProcess

afterAll(async () => {
  await millrace?.kill9()
  await receiver.close()
  await removeDataDir(dataDir)
})

test(`nothing is lost and nothing sent twice that need not be, over ${kills} kills (SEED=${seed})`, async () => {
  const start = async () => {
    millrace = await startProcess({ dataDir, time: 'running' })
    return millrace
  }
  await killWhileReplaying({ receiver, start, seed, kills })
}, 600_000)

// A process that runs the embedded server on a data directory until its parent says stop.
import { startPostgres } from '../../src/postgres/embedded.ts'

const [dataDir] = process.argv.slice(2)
if (dataDir === undefined || !process.send) throw new Error('usage: fork with a data directory')
// As a terminal would have it: Ctrl-C reaches the whole group, and this process outlives it.
process.on('SIGINT', () => undefined)
try {
  const server = await startPostgres({ dataDir })
  server.done.then(
    () => process.send?.({ state: 'stopped' }),
    (error: Error) => process.send?.({ state: 'died', message: error.message }),
  )
  process.once('message', async () => {
    await server.stop()
    process.disconnect()
  })
  process.send({ state: 'ready', url: server.url })
} catch (error) {
  process.send({ state: 'refused', message: (error as Error).message })
  process.disconnect()
}

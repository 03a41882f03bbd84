// The acceptance's webhook receiver: a real server that checks every signature and remembers who was told.
import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Hooks = {
  readonly url: string
  /** Distinct bodies received with the right signature. */
  readonly bodies: ReadonlySet<string>
  wrong(): number
  close(): Promise<void>
}

export const startHooks = async (secret: string): Promise<Hooks> => {
  const bodies = new Set<string>()
  let wrong = 0
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks)
      const signature = createHmac('sha1', secret).update(body).digest('hex')
      if (request.headers['x-signature'] === signature) bodies.add(body.toString())
      else wrong += 1
      response.end()
    })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    bodies,
    wrong: () => wrong,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    },
  }
}

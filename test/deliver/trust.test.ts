// From a URL's settings to its receiver: the authority and client certificate set for it, and certificates refused.
import { readFileSync } from 'node:fs'
import { createServer, type ServerOptions } from 'node:https'
import type { Server } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { afterAll, expect, test } from 'vitest'
import { closeServers, listen } from '../http/servers.ts'
import { aDestination, aLive, aWebhook } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { open, rowsOf } = await useRig()
afterAll(closeServers)

const pem = (name: string) => readFileSync(new URL(`../http/tls/${name}`, import.meta.url), 'utf8')

const serve = async (tls: ServerOptions) => {
  const clients: string[] = []
  const server = createServer(tls, (request, response) => {
    clients.push(String((request.socket as TLSSocket).getPeerCertificate().subject?.CN))
    request.resume()
    response.end()
  })
  server.on('tlsClientError', () => undefined)
  return { url: `https://localhost:${await listen(server as unknown as Server)}/`, clients }
}

test("a URL's own authority and client certificate are what its receiver is met with", async () => {
  const { url, clients } = await serve({
    cert: pem('other.crt'),
    key: pem('other.key'),
    ca: pem('other-ca.crt'),
    requestCert: true,
  })
  const clientCertificate = { certificate: pem('client.crt'), key: pem('client.key') }
  const webhooks = [aWebhook({ url, ca: pem('other-ca.crt'), clientCertificate })]
  const rig = open(aLive({ destinations: [aDestination({ webhooks })] }))
  rig.start()
  await rig.append([rig.aCall(), rig.aCall()])
  await until(() => clients.length === 2, 'both arrive')
  expect(clients).toEqual(['client', 'client'])
})

test('a self-signed receiver gets nothing, and the message is dead with that reason', async () => {
  const { url, clients } = await serve({ cert: pem('self.crt'), key: pem('self.key') })
  const webhooks = [aWebhook({ url, ca: pem('self.crt') })]
  const rig = open(aLive({ destinations: [aDestination({ webhooks })] }))
  rig.start()
  await rig.append([rig.aCall()])
  await until(async () => (await rowsOf('dead')).length === 1, 'it is dead')
  expect(await rowsOf('dead')).toMatchObject([{ reason: 'tls_self_signed' }])
  expect(clients).toEqual([])
})

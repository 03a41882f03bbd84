// TLS of the outgoing port: who is refused before a byte of a request, who is trusted, and the probe.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer as createHttps, type ServerOptions } from 'node:https'
import { createServer as createPlain } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { openPost } from '../../src/http/open-post.ts'
import { tlsProblem } from '../../src/http/trust.ts'
import { until } from '../support/until.ts'
import { closeServers, listen } from './servers.ts'

const posts: ReturnType<typeof openPost>[] = []

const open = (options: Parameters<typeof openPost>[0] = {}) => {
  const post = openPost({ addresses: { allowPrivate: true, allowed: [] }, ...options })
  posts.push(post)
  return post
}

afterAll(async () => {
  await Promise.all(posts.map((post) => post.close()))
  closeServers()
})

const body = Buffer.from('{"type":"track"}')
const headers = { 'Content-Type': 'application/json' }
const pem = (name: string) => readFileSync(new URL(`tls/${name}`, import.meta.url), 'utf8')

/** Counts requests, and every byte that came decrypted. */
const serve = async (tls: ServerOptions) => {
  const seen = { requests: 0, bytes: 0, handshakes: 0, clients: [] as string[] }
  const server = createHttps(tls, (request, response) => {
    seen.requests += 1
    const peer = (request.socket as TLSSocket).getPeerCertificate()
    seen.clients.push(String(peer.subject?.CN ?? ''))
    request.resume()
    response.end()
  })
  server.on('secureConnection', (socket) => {
    seen.handshakes += 1
    socket.on('data', (chunk: Buffer) => {
      seen.bytes += chunk.length
    })
  })
  server.on('tlsClientError', () => undefined)
  const port = await listen(server)
  return { url: `https://localhost:${port}/`, server, seen }
}

const keyed = (name: string, chain: readonly string[] = []) => ({
  key: pem(`${name}.key`),
  cert: [pem(`${name}.crt`), ...chain.map(pem)].join('\n'),
})

describe('a TLS receiver', () => {
  test('whose certificate a trusted authority signed gets the message', async () => {
    const { url, seen } = await serve(keyed('leaf'))
    const result = await open({ ca: pem('ca.crt') })({ url, headers, body })
    expect(result).toMatchObject({ answer: { type: 'delivered' }, reused: false })
    expect(result.phases.tlsMs).toBeGreaterThan(0)
    expect(seen.requests).toBe(1)
  })

  test.each([
    { whose: 'whose certificate is self-signed', tls: keyed('self'), reason: 'tls_self_signed' },
    {
      whose: 'whose certificate is self-signed and has expired',
      tls: keyed('self-expired'),
      reason: 'tls_self_signed',
    },
    {
      whose: 'that sends a root of its own along',
      tls: keyed('leaf', ['ca.crt']),
      reason: 'tls_private_root',
    },
    {
      whose: 'whose authority is unknown and was not sent',
      tls: keyed('leaf'),
      reason: 'tls_incomplete_chain',
    },
  ])('$whose gets no request', async ({ tls, reason }) => {
    const { url, seen } = await serve(tls)
    const post = open()
    const type = reason === 'tls_incomplete_chain' ? 'temporary' : 'final'
    expect((await post({ url, headers, body })).answer).toMatchObject({ type, reason })
    expect(await post.probe(url)).toBe(reason)
    expect(seen).toMatchObject({ requests: 0, bytes: 0 })
  })

  test('whose self-signed certificate is trusted by name gets no request either', async () => {
    const { url, seen } = await serve(keyed('self'))
    const trusting = open({ ca: pem('self.crt') })
    const tls = { ca: pem('self.crt') }
    for (const [post, own] of [
      [trusting, {}],
      [open(), { tls }],
    ] as const) {
      const { answer } = await post({ url, headers, body, ...own })
      expect(answer).toMatchObject({ type: 'final', reason: 'tls_self_signed' })
    }
    expect(await open().probe(url, tls)).toBe('tls_self_signed')
    expect(seen).toMatchObject({ requests: 0, bytes: 0 })
  })

  test.each([
    { of: 'for another name', name: 'self', host: '127.0.0.1' },
    { of: 'expired', name: 'self-expired', host: 'localhost' },
  ])('whose self-signed certificate is $of besides is final all the same', async (one) => {
    const { url, seen } = await serve(keyed(one.name))
    const elsewhere = url.replace('localhost', one.host)
    const tls = { ca: pem(`${one.name}.crt`) }
    for (const own of [{}, { tls }]) {
      const { answer } = await open()({ url: elsewhere, headers, body, ...own })
      expect(answer).toMatchObject({ type: 'final', reason: 'tls_self_signed' })
    }
    expect(await open().probe(elsewhere, tls)).toBe('tls_self_signed')
    expect(seen).toMatchObject({ requests: 0, bytes: 0 })
  })

  test('stays refused where the environment switches verification off', async () => {
    const { url, seen } = await serve(keyed('self'))
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
    const result = await open()({ url, headers, body }).finally(() => {
      delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    })
    expect(result.answer).toMatchObject({ type: 'final', reason: 'tls_self_signed' })
    expect(seen).toMatchObject({ requests: 0, bytes: 0 })
  })

  test('whose certificate has expired is temporary, and gets no request', async () => {
    const { url, seen } = await serve(keyed('expired'))
    const post = open({ ca: pem('other-ca.crt') })
    expect((await post({ url, headers, body })).answer).toMatchObject({
      type: 'temporary',
      reason: 'tls_expired',
    })
    expect(await post.probe(url)).toBe('tls_expired')
    expect(seen).toMatchObject({ requests: 0, bytes: 0 })
  })

  test('under another name is temporary, and gets no request', async () => {
    const { url, seen } = await serve(keyed('leaf'))
    const elsewhere = url.replace('localhost', '127.0.0.1')
    const { answer } = await open({ ca: pem('ca.crt') })({ url: elsewhere, headers, body })
    expect(answer).toMatchObject({ type: 'temporary', reason: 'tls_wrong_name' })
    expect(seen).toMatchObject({ requests: 0, bytes: 0 })
  })

  test('addressed by an address that its certificate names gets the message', async () => {
    const { url, seen } = await serve(keyed('other'))
    const byAddress = url.replace('localhost', '127.0.0.1')
    const { answer } = await open({ ca: pem('other-ca.crt') })({ url: byAddress, headers, body })
    expect(answer).toEqual({ type: 'delivered' })
    expect(seen.requests).toBe(1)
  })

  test('that speaks plain HTTP is temporary', async () => {
    const port = await listen(
      createPlain((socket) => socket.once('data', () => socket.end('HTTP/1.1 400 No\r\n\r\n'))),
    )
    expect(
      (await open()({ url: `https://localhost:${port}/`, headers, body })).answer,
    ).toMatchObject({ type: 'temporary', reason: 'tls_failed' })
  })

  test('that never finishes its handshake runs into the connect timeout', async () => {
    const port = await listen(createPlain())
    const quick = open({ limits: { connectMs: 100, probeMs: 100 } })
    const url = `https://localhost:${port}/`
    const { answer } = await quick({ url, headers, body })
    expect(answer).toMatchObject({ type: 'temporary', reason: 'connect_timeout' })
    expect(await quick.probe(url)).toBe('connect_timeout')
  })
})

describe('what a URL brings along', () => {
  test('an authority of its own is trusted for it alone, beside those of all', async () => {
    const [leaf, other] = [await serve(keyed('leaf')), await serve(keyed('other'))]
    const post = open({ ca: pem('ca.crt') })
    const tls = { ca: pem('other-ca.crt') }
    const send = (url: string, own = {}) => post({ url, headers, body, ...own })
    expect((await send(other.url)).answer).toMatchObject({ reason: 'tls_incomplete_chain' })
    expect((await send(other.url, { tls })).answer).toEqual({ type: 'delivered' })
    // The kept connection was verified under another trust.
    expect((await send(other.url)).answer).toMatchObject({ reason: 'tls_incomplete_chain' })
    expect((await send(leaf.url, { tls })).answer).toEqual({ type: 'delivered' })
    expect((await send(other.url, { tls: { ...tls } })).reused).toBe(true)
  })

  test("an authority of its own is added to the system's, and does not replace them", async () => {
    const { url } = await serve(keyed('leaf'))
    const script = `
      const { openPost } = await import(process.argv[1])
      const post = openPost({ addresses: { allowPrivate: true, allowed: [] } })
      const [url, ca] = process.argv.slice(2)
      for (const tls of [{}, { ca }]) {
        const { answer } = await post({ url, headers: {}, body: Buffer.from('{}'), tls })
        console.log(answer.type)
      }
      await post.close()`
    const port = new URL('../../src/http/open-post.ts', import.meta.url).href
    const args = ['--input-type=module', '-e', script, port, url, pem('other-ca.crt')]
    // To this process, the test's authority is one of the system's.
    const extra = fileURLToPath(new URL('tls/ca.crt', import.meta.url))
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: extra }
    const { stdout } = await promisify(execFile)(process.execPath, args, { env })
    expect(stdout.trim().split('\n')).toEqual(['delivered', 'delivered'])
  })

  test('a client certificate is shown to that receiver, and not by others to it', async () => {
    const asking = { ...keyed('other'), ca: pem('other-ca.crt'), requestCert: true }
    const { url, seen } = await serve({ ...asking, rejectUnauthorized: false })
    const post = open({ ca: pem('other-ca.crt') })
    const tls = { certificate: pem('client.crt'), key: pem('client.key') }
    await post({ url, headers, body })
    await post({ url, headers, body, tls })
    await post({ url, headers, body })
    expect(seen.clients).toEqual(['', 'client', ''])
    expect(seen.handshakes).toBe(2)
    expect(await post.probe(url, tls)).toBe('ok')
  })

  test('a receiver that demands a client certificate and gets none is temporary', async () => {
    const { url, seen } = await serve({
      ...keyed('other'),
      ca: pem('other-ca.crt'),
      requestCert: true,
    })
    const { answer } = await open({ ca: pem('other-ca.crt') })({ url, headers, body })
    expect(answer.type).toBe('temporary')
    expect(seen.requests).toBe(0)
  })

  test('what cannot be used is final, and told when it is saved', async () => {
    const { url, seen } = await serve(keyed('other'))
    const mixed = { certificate: pem('client.crt'), key: pem('other.key') }
    const post = open({ ca: pem('other-ca.crt') })
    expect((await post({ url, headers, body, tls: mixed })).answer).toMatchObject({
      type: 'final',
      reason: 'tls_settings_invalid',
    })
    expect(seen.requests).toBe(0)
    const client = { certificate: pem('client.crt'), key: pem('client.key') }
    expect(tlsProblem(client)).toBeNull()
    expect(tlsProblem({ ...client, ca: pem('ca.crt') })).toBeNull()
    expect(tlsProblem({ ca: `${pem('ca.crt')}\n${pem('other-ca.crt')}` })).toBeNull()
    expect(tlsProblem(mixed)).toMatch(/not that of the certificate/)
    expect(tlsProblem({ certificate: pem('client.crt') })).toMatch(/go together/)
    expect(tlsProblem({ ca: 'nonsense' })).toMatch(/no certificate/)
    expect(tlsProblem({ ca: pem('client.key') })).toMatch(/no certificate/)
    expect(tlsProblem({ ...client, certificate: 'x' })).toMatch(/none in PEM/)
  })
})

describe('a probe', () => {
  test('shakes hands, writes nothing more, and closes', async () => {
    const { url, server, seen } = await serve(keyed('leaf'))
    let closed = 0
    server.on('secureConnection', (socket) => socket.on('close', () => (closed += 1)))
    expect(await open({ ca: pem('ca.crt') }).probe(url)).toBe('ok')
    await until(() => closed === 1, 'the connection is closed')
    expect(seen).toMatchObject({ handshakes: 1, requests: 0, bytes: 0 })
  })

  test('of a receiver without TLS connects, and tells why it could not', async () => {
    const server = createPlain()
    const port = await listen(server)
    const url = `http://127.0.0.1:${port}/`
    expect(await open().probe(url)).toBe('ok')
    await new Promise((resolve) => server.close(resolve))
    expect(await open().probe(url)).toBe('connection_refused')
    expect(await open().probe('nonsense')).toBe('invalid_url')
    expect(await openPost().probe(url)).toBe('address_blocked')
  })
})

// Which addresses webhooks may reach: each network at both its ends, and every way to write one.
import { lookup } from 'node:dns/promises'
import { createServer } from 'node:http'
import type { Server } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { addressCheck, mayBeReached } from '../../src/http/addresses.ts'
import { openSocket } from '../../src/http/connect.ts'
import type { Resolve } from '../../src/http/lookup.ts'
import { openPost } from '../../src/http/open-post.ts'
import { closeServers, listen } from './servers.ts'

const publicOnly = addressCheck({ allowPrivate: false, allowed: [] })
const withPrivate = addressCheck({ allowPrivate: true, allowed: [] })

afterAll(closeServers)

describe('an address', () => {
  test.each([
    ['10.0.0.0', '10.255.255.255'],
    ['100.64.0.0', '100.127.255.255'],
    ['127.0.0.0', '127.255.255.255'],
    ['172.16.0.0', '172.31.255.255'],
    ['192.168.0.0', '192.168.255.255'],
    ['::1', '::1'],
    ['fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ])('from %s to %s is private', (first, last) => {
    for (const address of [first, last]) {
      expect(publicOnly(address)).toBe(false)
      expect(withPrivate(address)).toBe(true)
    }
  })

  test.each([
    ['0.0.0.0', '0.255.255.255'],
    ['169.254.0.0', '169.254.255.255'],
    ['169.254.169.254', '169.254.169.254'],
    ['192.0.0.0', '192.0.0.255'],
    ['192.0.2.0', '192.0.2.255'],
    ['192.88.99.0', '192.88.99.255'],
    ['198.18.0.0', '198.19.255.255'],
    ['198.51.100.0', '198.51.100.255'],
    ['203.0.113.0', '203.0.113.255'],
    ['224.0.0.0', '239.255.255.255'],
    ['240.0.0.0', '255.255.255.255'],
    ['::', '::'],
    ['::7f00:1', '::ffff:ffff'],
    ['::ffff:0:0:0', '::ffff:0:ffff:ffff'],
    ['::ffff:0:127.0.0.1', '::ffff:0:8.8.8.8'],
    ['64:ff9b::', '64:ff9b::ffff:ffff'],
    ['64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff'],
    ['100::', '100::ffff:ffff:ffff:ffff'],
    ['2001::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['3fff::', '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['5f00::', '5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['::ffff:169.254.169.254', '::ffff:0.0.0.0'],
  ])('from %s to %s is refused even where private ones are allowed', (first, last) => {
    for (const address of [first, last]) {
      expect(publicOnly(address)).toBe(false)
      expect(withPrivate(address)).toBe(false)
    }
  })

  test.each([
    '1.1.1.1',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
    '169.253.255.255',
    '172.15.255.255',
    '172.32.0.0',
    '192.0.1.0',
    '192.167.255.255',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
    '2001:200::',
    '2606:4700::1111',
    '2a00:1450::',
  ])('%s is public', (address) => {
    expect(publicOnly(address)).toBe(true)
  })

  test('written as IPv6 is judged as the IPv4 address it is, and a public one is refused so', () => {
    expect(publicOnly('::ffff:127.0.0.1')).toBe(false)
    expect(withPrivate('::ffff:7f00:1')).toBe(true)
    expect(publicOnly('::ffff:8.8.8.8')).toBe(false)
  })

  test('of an allowed network is allowed whatever else holds', () => {
    const allowed = ['10.1.0.0/16', '169.254.169.254', 'fe80::/10']
    const check = addressCheck({ allowPrivate: false, allowed })
    for (const address of ['10.1.2.3', '169.254.169.254', 'fe80::1', '::ffff:10.1.2.3'])
      expect(check(address)).toBe(true)
    for (const address of ['10.2.0.0', '169.254.169.253', '127.0.0.1'])
      expect(check(address)).toBe(false)
  })

  test('that is none is refused', () => {
    for (const text of ['', 'a.test', '1.2.3', '1.2.3.4.5', 'fe80::1%eth0x y'])
      expect(publicOnly(text)).toBe(false)
  })
})

describe('a URL', () => {
  test.each([
    'http://127.0.0.1/',
    'http://2130706433/',
    'http://0x7f.1/',
    'http://0177.0.0.1/',
    'http://127.1/',
    'http://127.0.0.1./',
    'http://[::ffff:127.0.0.1]/',
    'http://[0:0:0:0:0:0:0:1]/',
    'http://localhost/',
    'http://LocalHost./',
    'http://a.localhost/',
    'http://１２７.0.0.1/',
    'http://169.254.169.254/latest/meta-data',
  ])('%s is refused before anything is resolved or connected', async (url) => {
    const resolve: Resolve = async () => {
      throw new Error('resolved')
    }
    const post = openPost({ resolve })
    const result = await post({ url, headers: {}, body: Buffer.from('{}') })
    expect(result.answer).toEqual({ type: 'final', reason: 'address_blocked', status: null })
    expect(await post.probe(url)).toBe('address_blocked')
    await post.close()
  })

  test('with a name is judged by what the name resolves to, not by the name', () => {
    expect(mayBeReached('metadata.test', publicOnly)).toBe(true)
    expect(mayBeReached('localhost', addressCheck({ allowPrivate: false, allowed: ['::1'] }))).toBe(
      true,
    )
  })
})

/** A receiver on one loopback address, while others of the loopback stand for addresses not allowed. */
const receive = async (address: string) => {
  const seen = { requests: 0, connections: 0, hosts: [] as string[] }
  const server = createServer((request, response) => {
    seen.requests += 1
    seen.hosts.push(String(request.headers.host))
    request.resume()
    response.end()
  })
  server.on('connection', () => {
    seen.connections += 1
  })
  return { port: await listen(server as unknown as Server, address), seen }
}

const send = async (url: string, resolve: Resolve, allowed: readonly string[]) => {
  const post = openPost({ resolve, addresses: { allowPrivate: false, allowed } })
  const result = await post({ url, headers: {}, body: Buffer.from('{}') })
  await post.close()
  return result
}

const v4 = (address: string) => ({ address, family: 4 })

describe('a name', () => {
  test('that leads to addresses not allowed only is final, and nothing is connected', async () => {
    const { port, seen } = await receive('127.0.0.1')
    const resolve: Resolve = async () => [v4('127.0.0.1'), { address: '::1', family: 6 }]
    const { answer } = await send(`http://inside.test:${port}/`, resolve, ['127.0.0.2'])
    expect(answer).toEqual({ type: 'final', reason: 'address_blocked', status: null })
    expect(seen.connections).toBe(0)
  })

  test('that leads to both kinds is connected to the allowed address alone', async () => {
    const blocked = await receive('127.0.0.1')
    const resolve: Resolve = async () => [v4('127.0.0.1'), v4('127.0.0.2')]
    const server = createServer((_request, response) => response.end()) as unknown as Server
    server.listen(blocked.port, '127.0.0.2')
    await new Promise((done) => server.once('listening', done))
    const url = `http://both.test:${blocked.port}/`
    expect((await send(url, resolve, ['127.0.0.2'])).answer).toEqual({ type: 'delivered' })
    expect(blocked.seen.connections).toBe(0)
    server.close()
  })

  test('is resolved once for a connection: what it leads to a moment later changes nothing', async () => {
    const { port, seen } = await receive('127.0.0.2')
    let asked = 0
    const rebinding: Resolve = async () => {
      asked += 1
      return [v4(asked === 1 ? '127.0.0.2' : '127.0.0.1')]
    }
    const { answer } = await send(`http://rebinding.test:${port}/`, rebinding, ['127.0.0.2'])
    expect(answer).toEqual({ type: 'delivered' })
    expect(asked).toBe(1)
    expect(seen.hosts).toEqual([`rebinding.test:${port}`])
  })

  test('without any address is temporary', async () => {
    const { answer } = await send('http://empty.test/', async () => [], [])
    expect(answer).toMatchObject({ type: 'temporary', reason: 'dns_not_found' })
  })

  test('that no name server tells of in time is unresolved, not a receiver that cannot be connected to', async () => {
    const post = openPost({
      resolve: () => new Promise(() => undefined),
      limits: { connectMs: 50 },
    })
    const request = { url: 'http://silent.test/', headers: {}, body: Buffer.from('{}') }
    expect((await post(request)).answer).toMatchObject({ type: 'temporary', reason: 'dns_failed' })
    await post.close()
  })

  test('is resolved by the system where nothing else is given', async () => {
    const addresses = (await lookup('localhost', { all: true })).map(({ address }) => address)
    const { port } = await receive(addresses[0] as string)
    const post = openPost({ addresses: { allowPrivate: true, allowed: [] } })
    const url = `http://localhost:${port}/`
    const result = await post({ url, headers: {}, body: Buffer.from('{}') })
    expect(result.answer).toEqual({ type: 'delivered' })
    expect(result.phases.dnsMs).toBeGreaterThan(0)
    await post.close()
  })
})

test('a socket whose peer is not allowed is closed before anything is written', async () => {
  const { port, seen } = await receive('127.0.0.1')
  // As if the system connected elsewhere than it was told: allowed before the connect, not after it.
  let asked = 0
  const isAllowed = () => {
    asked += 1
    return asked === 1
  }
  const opening = { timeoutMs: 5_000, isAllowed, resolve: async () => [v4('127.0.0.1')] }
  const peer = { hostname: 'a.test', port, context: null }
  await expect(openSocket(opening, peer)).rejects.toMatchObject({
    code: 'MILLRACE_ADDRESS_BLOCKED',
  })
  expect(asked).toBe(2)
  expect(seen.requests).toBe(0)
})

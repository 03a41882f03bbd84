import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { IpPolicy } from '../../src/domain/configuration.ts'
import {
  clientAddress,
  isWithin,
  keptAddress,
  type Network,
  readAddress,
  readNetwork,
  trustsIn,
  writeAddress,
} from '../../src/domain/ip.ts'
import type { Json } from '../../src/domain/message.ts'

const shown = (text: string) => {
  const address = readAddress(text)
  return address === null ? null : writeAddress(address)
}

describe('an address', () => {
  test.each<[string, string | null]>([
    ['203.0.113.9', '203.0.113.9'],
    ['0.0.0.0', '0.0.0.0'],
    ['::', '::'],
    ['::1', '::1'],
    ['1::', '1::'],
    ['2001:DB8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['::FFFF:cb00:7109', '203.0.113.9'],
    ['0:0:0:0:0:ffff:203.0.113.9', '203.0.113.9'],
    ['64:ff9b::203.0.113.9', '64:ff9b::cb00:7109'],
    ['10:0:0:10::', '10:0:0:10::'],
    ['203.0.113', null],
    ['203.0.113.256', null],
    ['203.0.113.09', null],
    ['203.0.113.9.1', null],
    ['1:2:3:4:5:6:7', null],
    ['1:2:3:4:5:6:7:8:9', null],
    ['1:2:3:4:5:6:7::8', null],
    ['1::2::3', null],
    [':::', null],
    [':1', null],
    ['1:', null],
    ['12345::', null],
    ['1.2.3.4::', null],
    ['1.2.3.4::1', null],
    ['::1.2.3', null],
    ['::1.2.3.4:5', null],
    ['g::', null],
    [`${'0'.repeat(50)}::`, null],
    ['localhost', null],
    ['unknown', null],
    ['', null],
    [' 10.0.0.1', null],
    ['10.0.0.1/8', null],
  ])('%j reads as %j', (text, address) => {
    expect(shown(text)).toBe(address)
  })

  test('reads back as it was written, whichever it is', () => {
    const byte = fc.constantFrom(0, 0, 0, 1, 16, 255)
    const address = fc.oneof(
      fc.tuple(byte, byte, byte, byte),
      fc.array(byte, { minLength: 16, maxLength: 16 }),
    )
    fc.assert(
      fc.property(address, (bytes) => {
        const text = writeAddress(bytes)
        const again = readAddress(text)
        expect(again && writeAddress(again)).toBe(writeAddress(readAddress(text) ?? []))
        if (!(text.startsWith('::ffff:') && bytes.length === 16)) expect(again).toEqual(bytes)
        // Node’s parser of URLs writes IPv6 addresses as RFC 5952 says, too.
        if (bytes.length === 16) expect(new URL(`http://[${text}]`).hostname).toBe(`[${text}]`)
      }),
    )
  })
})

describe('a network', () => {
  test.each<[string, string, boolean]>([
    ['10.0.0.0/8', '10.255.0.1', true],
    ['10.0.0.0/8', '11.0.0.1', false],
    ['10.0.0.0/9', '10.128.0.0', false],
    ['10.1.2.3', '10.1.2.3', true],
    ['10.1.2.3', '10.1.2.4', false],
    ['0.0.0.0/0', '203.0.113.9', true],
    ['0.0.0.0/0', '2001:db8::1', false],
    ['fd00::/8', 'fdff::1', true],
    ['fd00::/8', 'fe00::1', false],
    ['2001:db8::/33', '2001:db8:8000::', false],
    ['::1', '::1', true],
    ['10.0.0.0/8', '::ffff:10.0.0.1', true],
    ['::ffff:10.0.0.0/104', '10.9.9.9', true],
    ['::ffff:10.0.0.0/104', '11.9.9.9', false],
  ])('%s against %s: %s', (network, address, isIn) => {
    const [read, of] = [readNetwork(network), readAddress(address)]
    expect(read && of && isWithin(of, read)).toBe(isIn)
  })

  test.each([
    '10.0.0.0/33',
    '::/129',
    '10.0.0/8',
    '10.0.0.0/',
    '/8',
    '10.0.0.0/8/8',
    '::1.2.3.4/x',
  ])('%s is none', (text) => expect(readNetwork(text)).toBeNull())
})

describe('the client', () => {
  const networks = ['10.0.0.0/8', 'fd00::/8'].map((text) => readNetwork(text) as Network)
  const trusts = trustsIn(networks)
  test.each<[string, string, string | undefined, string | null]>([
    ['is who connects, without a proxy', '203.0.113.9', undefined, '203.0.113.9'],
    ['is who connects, whatever a stranger says', '203.0.113.9', '198.51.100.1', '203.0.113.9'],
    ['is named by a proxy of ours', '10.0.0.1', '198.51.100.1', '198.51.100.1'],
    [
      'is the first stranger from the right',
      '10.0.0.1',
      '1.1.1.1, 198.51.100.1, 10.2.2.2',
      '198.51.100.1',
    ],
    ['is the left end where all are ours', '10.0.0.1', '10.3.3.3,10.2.2.2', '10.3.3.3'],
    ['is the proxy itself where it names nobody', '10.0.0.1', undefined, '10.0.0.1'],
    ['may come with a port', '10.0.0.1', '198.51.100.1:4711', '198.51.100.1'],
    ['may be in brackets', '10.0.0.1', '[2001:db8::1]', '2001:db8::1'],
    ['may be in brackets with a port', '10.0.0.1', '"[2001:db8::1]:443"', '2001:db8::1'],
    ['may be bare IPv6', '10.0.0.1', '2001:DB8:0::1', '2001:db8::1'],
    ['may be IPv4 written as IPv6', '::ffff:10.0.0.1', '::ffff:198.51.100.1', '198.51.100.1'],
    ['is found behind a proxy on IPv6', 'fd12::1', '198.51.100.1', '198.51.100.1'],
    ['is nobody where our proxy does not know it', '10.0.0.1', '198.51.100.1, unknown', null],
    ['is nobody where our proxy says nothing', '10.0.0.1', '198.51.100.1,', null],
    ['is nobody where our proxy writes garbage', '10.0.0.1', '198.51.100.1, 300.1.1.1', null],
    [
      'is not harmed by garbage further left',
      '10.0.0.1',
      '<script>, x, 198.51.100.1',
      '198.51.100.1',
    ],
    ['is not taken from the other header’s form', '10.0.0.1', 'for=198.51.100.1', null],
    ['is nobody on a socket without an address', '', '198.51.100.1', null],
  ])('%s', (_name, ...[remote, forwardedFor, client]) => {
    expect(clientAddress(remote, forwardedFor, trusts)).toBe(client)
  })

  test('is who connects where nobody is trusted', () => {
    expect(clientAddress('10.0.0.1', '198.51.100.1', trustsIn([]))).toBe('10.0.0.1')
  })
})

describe('of an address', () => {
  test.each<[IpPolicy, Json, Json | undefined]>([
    ['keep', '203.0.113.9', '203.0.113.9'],
    ['keep', 'somewhere', 'somewhere'],
    ['truncate', '203.0.113.9', '203.0.113.0'],
    ['truncate', '203.0.113.0', '203.0.113.0'],
    ['truncate', '::ffff:203.0.113.9', '203.0.113.0'],
    ['truncate', '::ffff:cb00:7109', '203.0.113.0'],
    ['truncate', '2001:db8:85a3:8d3:1319:8a2e:370:7348', '2001:db8:85a3::'],
    ['truncate', '2001:db8::1', '2001:db8::'],
    ['truncate', 'fe80::1%eth0', 'fe80::'],
    ['truncate', '::1', '::'],
    ['truncate', '2002:cb00:7109::1', '2002:cb00:7100::'],
    ['truncate', '203.0.113.9:80', undefined],
    ['truncate', 'somewhere', undefined],
    ['truncate', 17, undefined],
    ['truncate', { v4: '203.0.113.9' }, undefined],
    ['truncate', null, undefined],
    ['drop', '203.0.113.9', undefined],
    ['drop', '2001:db8::1', undefined],
    ['drop', 'somewhere', undefined],
  ])('the policy %s keeps of %j: %j', (policy, ip, kept) => {
    expect(keptAddress(ip, policy)).toEqual(kept)
  })

  test('all hosts of a network leave the same, and cutting it again changes nothing', () => {
    fc.assert(
      fc.property(fc.ipV6(), fc.ipV6(), (one, other) => {
        const [cut, again] = [keptAddress(one, 'truncate'), keptAddress(other, 'truncate')]
        expect(keptAddress(cut as Json, 'truncate')).toBe(cut)
        const network = readNetwork(`${cut}/48`)
        const address = readAddress(other)
        if (network && address && isWithin(address, network) && !other.startsWith('2002'))
          expect(again).toBe(cut)
      }),
    )
  })
})

// Which addresses webhooks may go to: asked when one is saved, when a name is resolved, and of every open socket.
import { BlockList, isIP } from 'node:net'

export type AddressRules = {
  /** Loopback and private networks are allowed. */
  readonly allowPrivate: boolean
  /** Networks allowed whatever else holds, like 10.1.0.0/16. */
  readonly allowed: readonly string[]
}

export type IsAllowed = (address: string) => boolean

/** What `allowPrivate` opens: networks of one's own, and this machine. */
const privateNetworks = [
  '10.0.0.0/8',
  '100.64.0.0/10', // shared by carriers, and used within clusters
  '127.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '::1/128',
  'fc00::/7', // unique local
]

/** No receiver stands there, or one that must not be asked: only an allowed network opens these. */
const reservedNetworks = [
  '0.0.0.0/8',
  '169.254.0.0/16', // link-local, among it the clouds' metadata services
  '192.0.0.0/24', // protocol assignments
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays
  '198.18.0.0/15', // benchmarking
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and broadcast
  '::/128',
  '::/96', // IPv4-compatible
  '::ffff:0:0:0/96', // IPv4-translated: an IPv4 address inside
  '64:ff9b::/96', // NAT64: an IPv4 address inside
  '64:ff9b:1::/48', // NAT64 of one's own
  '100::/64', // discard-only
  '100:0:0:1::/64', // dummy
  '2001::/23', // protocol assignments, among them Teredo and ORCHID
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4: an IPv4 address inside
  '3fff::/20', // documentation
  '5f00::/16', // SRv6
  'fe80::/10', // link-local
  'fec0::/10', // site-local
  'ff00::/8', // multicast
]

const listOf = (networks: readonly string[]): BlockList => {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    const family = isIP(address) === 4 ? 'ipv4' : 'ipv6'
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return list
}

const privateList = listOf(privateNetworks)
const reservedList = listOf(reservedNetworks)
const mappedList = listOf(['::ffff:0:0/96'])
const loopbackList = listOf(['127.0.0.0/8', '::1/128'])

/** An IPv4 address written as IPv6 is judged by the IPv4 rules; a public one has no reason to be. */
export const addressCheck = (rules: AddressRules): IsAllowed => {
  const allowedList = listOf(rules.allowed)
  return (address) => {
    const version = isIP(address)
    if (version === 0) return false
    const family = version === 4 ? 'ipv4' : 'ipv6'
    if (allowedList.check(address, family)) return true
    // IPv4 rules match such an address too, but `::1/128` lies within `::/96`.
    if (loopbackList.check(address, family)) return rules.allowPrivate
    if (reservedList.check(address, family)) return false
    if (privateList.check(address, family)) return rules.allowPrivate
    return family === 'ipv4' || rules.allowPrivate || !mappedList.check(address, family)
  }
}

/** The address a URL's host is, without brackets; `null` for a name. */
export const literalOf = (hostname: string): string | null => {
  const address = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  return isIP(address) === 0 ? null : address
}

/** What can be told of a host without resolving it: what a name means is known only at each connection. */
export const mayBeReached = (hostname: string, isAllowed: IsAllowed): boolean => {
  if (/(^|\.)localhost\.?$/i.test(hostname)) return isAllowed('127.0.0.1') || isAllowed('::1')
  const address = literalOf(hostname)
  return address === null || isAllowed(address)
}

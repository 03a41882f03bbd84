// Internet addresses: read, compared with networks, found behind proxies, and cut to what a policy keeps.
import type { IpPolicy } from './configuration.ts'
import type { Json } from './message.ts'

/** Big-endian: 4 bytes, or 16. An IPv4 address written as IPv6 is an IPv4 address. */
export type Address = readonly number[]

export type Network = { readonly address: Address; readonly bits: number }

const decimal = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/

const readV4 = (text: string): Address | null => {
  const parts = decimal.exec(text)?.slice(1)
  // A leading zero is octal to some readers and decimal to others.
  if (!parts || parts.some((part) => part.length > 1 && part.startsWith('0'))) return null
  const bytes = parts.map(Number)
  return bytes.every((byte) => byte <= 255) ? bytes : null
}

const wordsOf = (text: string): readonly number[] | null => {
  if (text === '') return []
  const parts = text.split(':')
  const last = parts.at(-1) as string
  const tail = last.includes('.') ? readV4(last) : []
  if (tail === null) return null
  const heads = last.includes('.') ? parts.slice(0, -1) : parts
  if (!heads.every((part) => /^[0-9a-f]{1,4}$/i.test(part))) return null
  const words = heads.map((part) => Number.parseInt(part, 16))
  return [...words, ...wordsOfBytes(tail)]
}

const wordsOfBytes = (bytes: readonly number[]) =>
  Array.from({ length: bytes.length / 2 }, (_, at) => wordAt(bytes, at))

const wordAt = (bytes: readonly number[], at: number) =>
  ((bytes[2 * at] as number) << 8) | (bytes[2 * at + 1] as number)

const v6LengthMax = 45
const mapped = [0, 0, 0, 0, 0, 0xffff].join()

const readV6 = (text: string): Address | null => {
  if (text.length > v6LengthMax) return null
  const halves = text.split('::')
  if (halves.length > 2) return null
  const [head, tail] = halves.map(wordsOf)
  // Only the end may be written as IPv4.
  if (!head || tail === null || (tail && (halves[0] as string).includes('.'))) return null
  const missing = 8 - head.length - (tail?.length ?? 0)
  if (tail ? missing < 1 : missing !== 0) return null
  const words = [...head, ...new Array<number>(missing).fill(0), ...(tail ?? [])]
  const bytes = words.flatMap((word) => [word >> 8, word & 0xff])
  return words.slice(0, 6).join() === mapped ? bytes.slice(12) : bytes
}

/** `null`: it is none. The zone of a link (`%eth0`) is passed over. */
export const readAddress = (text: string): Address | null =>
  text.includes(':') ? readV6(text.replace(/%[\w.-]{1,64}$/, '')) : readV4(text)

/** As RFC 5952 writes it. */
export const writeAddress = (address: Address): string => {
  if (address.length === 4) return address.join('.')
  const words = wordsOfBytes(address).map((word) => word.toString(16))
  const runs = [...words.join(':').matchAll(/(?<![0-9a-f])0(?::0)+(?![0-9a-f])/g)]
  const longest = runs.reduce((best, [run]) => (run.length > best.length ? run : best), '')
  const text = words.join(':')
  if (longest === '') return text
  const at = runs.find(([run]) => run === longest)?.index ?? 0
  const [head, tail] = [text.slice(0, at), text.slice(at + longest.length)]
  return `${head.replace(/:$/, '')}::${tail.replace(/^:/, '')}`
}

/** `10.0.0.0/8`, `fd00::/8`, or one address. */
export const readNetwork = (text: string): Network | null => {
  const [, written = '', length] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const address = readAddress(written)
  if (address === null) return null
  const width = address.length * 8
  // `::ffff:10.0.0.0/104` counts its bits from the start of the IPv6 address it is written as.
  const skipped = width === 32 && written.includes(':') ? 96 : 0
  const bits = length === undefined ? width : Number(length) - skipped
  return bits >= 0 && bits <= width ? { address, bits } : null
}

/** The first `bits` bits, the others zero. */
const cut = (address: Address, bits: number): Address =>
  address.map((byte, at) => byte & (0xff00 >> Math.min(8, Math.max(0, bits - 8 * at))) & 0xff)

export const isWithin = (address: Address, { address: of, bits }: Network): boolean =>
  address.length === of.length && cut(address, bits).join() === cut(of, bits).join()

/** Whether the host at an address is one of ours. */
export type Trusts = (text: string) => boolean

/** `null` where nobody is trusted, so that nothing need be asked. */
export const trustsIn = (networks: readonly Network[]): Trusts | null => {
  if (networks.length === 0) return null
  return (text) => {
    const address = readAddress(text)
    return address !== null && networks.some((network) => isWithin(address, network))
  }
}

/** A hop as proxies write it: an address, with a port, in brackets, in quotes. */
const hostOfHop = (hop: string): string => {
  const text = hop.trim().replace(/^"(.*)"$/, '$1')
  const bracketed = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text)?.[1]
  return bracketed ?? text.replace(/^([^:]+):\d{1,5}$/, '$1')
}

const canonical = (text: string) => {
  const address = readAddress(text)
  return address === null ? null : writeAddress(address)
}

/**
 * The first host, seen from us, that is no proxy of ours: what stands further left in
 * `X-Forwarded-For` was written by whoever it is. `null` when our own proxy does not name it.
 */
export const clientAddress = (
  remote: string | undefined,
  forwardedFor: string | undefined,
  trusts: Trusts | null,
): string | null => {
  let client = canonical(remote ?? '')
  if (forwardedFor === undefined || client === null || !trusts?.(client)) return client
  for (const hop of forwardedFor.split(',').reverse()) {
    client = canonical(hostOfHop(hop))
    if (client === null || !trusts(client)) return client
  }
  return client
}

const v4NetworkBits = 24
const v6NetworkBits = 48
/** 2002::/16 carries an IPv4 address in the next 32 bits: of that, too, only the network is kept. */
const sixToFour: Network = { address: [0x20, 0x02, ...new Array<number>(14).fill(0)], bits: 16 }

const networkBits = (address: Address) => {
  if (address.length === 4) return v4NetworkBits
  return isWithin(address, sixToFour) ? 16 + v4NetworkBits : v6NetworkBits
}

/** What may be kept of an address; `undefined`: nothing. What is no address is nobody's network. */
export const keptAddress = (ip: Json, policy: IpPolicy): Json | undefined => {
  if (policy === 'keep') return ip
  const address = policy === 'truncate' && typeof ip === 'string' ? readAddress(ip) : null
  return address === null ? undefined : writeAddress(cut(address, networkBits(address)))
}

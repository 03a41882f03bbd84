// Resolves receivers' names: once at a time each, for a while, and so that a dead name server delays its own names alone.
import { lookup } from 'node:dns/promises'

export type Address = { readonly address: string; readonly family: number }

/** All addresses of a name, in the order to be tried. */
export type Resolve = (hostname: string) => Promise<readonly Address[]>

export const lookupLimits = {
  /** An answer is used this long without asking again. */
  freshMs: 30_000,
  /** After it asking again may take this long, or fail for a time, and the old answer is used. */
  patienceMs: 500,
  staleMs: 600_000,
  namesMax: 10_000,
  addressesMax: 8,
} as const

type Limits = { readonly [K in keyof typeof lookupLimits]: number }

type Known = { readonly addresses: readonly Address[]; readonly at: number }

export const systemResolve: Resolve = (hostname) =>
  lookup(hostname, { all: true, order: 'verbatim' })

/**
 * Two threads of the process resolve names: a name server that does not answer would take both with a
 * few connections to one dead receiver, and no other receiver could be connected to.
 */
export const openLookup = (resolve: Resolve, limits: Limits = lookupLimits): Resolve => {
  const known = new Map<string, Known>()
  const asking = new Map<string, Promise<readonly Address[]>>()
  const remember = (hostname: string, addresses: readonly Address[]) => {
    known.delete(hostname)
    const [oldest] = known.keys()
    if (known.size >= limits.namesMax && oldest !== undefined) known.delete(oldest)
    known.set(hostname, { addresses, at: performance.now() })
  }
  const ask = async (hostname: string) => {
    try {
      const addresses = (await resolve(hostname)).slice(0, limits.addressesMax)
      remember(hostname, addresses)
      return addresses
    } catch (error) {
      if (!isPassing(error)) known.delete(hostname)
      throw error
    } finally {
      asking.delete(hostname)
    }
  }
  const askOnce = (hostname: string) => {
    const going = asking.get(hostname)
    if (going !== undefined) return going
    const asked = ask(hostname)
    asking.set(hostname, asked)
    return asked
  }
  return async (hostname) => {
    const last = known.get(hostname)
    const ageMs = last ? performance.now() - last.at : Number.POSITIVE_INFINITY
    if (last && ageMs < limits.freshMs) return last.addresses
    if (!last || ageMs > limits.staleMs) return askOnce(hostname)
    return refreshed(askOnce(hostname), last, limits.patienceMs)
  }
}

const refreshed = (
  asked: Promise<readonly Address[]>,
  last: Known,
  patienceMs: number,
): Promise<readonly Address[]> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(last.addresses), patienceMs)
    asked
      .then(resolve, (error) => (isPassing(error) ? resolve(last.addresses) : reject(error)))
      .finally(() => clearTimeout(timer))
  })

/** No name server answered, or none could: that the name is gone was not said. */
const isPassing = (error: unknown): boolean => (error as { code?: unknown }).code !== 'ENOTFOUND'

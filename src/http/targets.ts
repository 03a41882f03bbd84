// Where a URL leads: parsed, vetted as far as it can be without resolving it, and remembered.
import type { Answer } from '../domain/round.ts'
import { type IsAllowed, literalOf, mayBeReached } from './addresses.ts'
import { classifyError, codedError } from './classify.ts'
import type { Peer } from './connect.ts'
import { leadOf } from './request-head.ts'
import type { PostTls, Trust } from './trust.ts'

export type Target = {
  /** Connections are shared by origin, and by what the URL adds to the system's trust. */
  readonly key: string
  /** The lines that every request to it begins with. */
  readonly lead: string
  readonly peer: Peer
}

export type Targets = {
  /** Or the answer, where nothing can be sent. */
  find(url: string, tls?: PostTls): Target | Answer
}

const targetsMax = 10_000

/** Parsed once per URL; the cache is emptied when it is full, which costs a parse each. */
export const openTargets = (trust: Trust, isAllowed: IsAllowed): Targets => {
  const targets = new Map<string, Target | Answer>()
  return {
    find: (url, tls) => {
      const fingerprint = tls ? trust.keyOf(tls) : ''
      const name = fingerprint === '' ? url : `${fingerprint} ${url}`
      const known = targets.get(name)
      if (known) return known
      const target = targetOf(url, isAllowed, () => trust.contextOf(tls))
      if (targets.size >= targetsMax) targets.clear()
      const found = 'key' in target ? { ...target, key: `${fingerprint} ${target.key}` } : target
      targets.set(name, found)
      return found
    },
  }
}

const targetOf = (
  url: string,
  isAllowed: IsAllowed,
  context: NonNullable<Peer['context']>,
): Target | Answer => {
  const parsed = URL.parse(url)
  const isWeb = parsed?.protocol === 'http:' || parsed?.protocol === 'https:'
  if (!parsed || !isWeb || parsed.port === '0')
    return classifyError(codedError('ERR_INVALID_URL', 'no URL that can be posted to'))
  if (!mayBeReached(parsed.hostname, isAllowed))
    return classifyError(codedError('MILLRACE_ADDRESS_BLOCKED', 'no address that may be reached'))
  const isSecure = parsed.protocol === 'https:'
  return {
    key: parsed.origin,
    lead: leadOf(parsed),
    peer: {
      hostname: literalOf(parsed.hostname) ?? parsed.hostname,
      port: Number(parsed.port) || (isSecure ? 443 : 80),
      context: isSecure ? context : null,
    },
  }
}

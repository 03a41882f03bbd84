// Finds the source a request speaks for by its key, and says why when there is none.
import { hash } from 'node:crypto'
import { isCollectedIn, type Source } from '../../domain/configuration.ts'
import { type Refusal, refuse } from '../answer/answer.ts'
import type { Deps } from '../deps.ts'
import type { Envelope } from './envelope.ts'

const elsewhere = refuse(
  'region_not_allowed',
  'the workspace of this source has no access to this region: send its calls to the default region',
)

const forbiddenOrigin = refuse('origin_not_allowed', 'this source takes no calls from this origin')

export const unknownKey = refuse('unknown_write_key', 'no source has this write key')

const noKey = refuse('no_write_key', 'send the write key by Basic authentication or as "writeKey"')

/** Who a key speaks for, and whether it is the key that no page holds. */
export type Speaker = { readonly source: Source; readonly isSecret: boolean }

/** Of the key in the header, the only place where a secret key counts. */
export const speakerOf = (deps: Pick<Deps, 'live'>, key: string): Speaker | null => {
  const { sourceByWriteKey, sourceBySecretKeyHash } = deps.live.now()
  const source = sourceByWriteKey.get(key)
  if (source) return { source, isSecret: false }
  const owner = sourceBySecretKeyHash.get(hash('sha256', key, 'hex'))
  return owner ? { source: owner, isSecret: true } : null
}

export type Claim = {
  /** Found by the header; `null` when there is none that can be read. */
  readonly speaker: Speaker | null
  readonly envelope: Envelope
  readonly origin: string | null
}

export const authenticate = (deps: Deps, claim: Claim): Speaker | Refusal => {
  const { envelope, origin } = claim
  const configuration = deps.live.now()
  const bodySource =
    envelope.writeKey === null ? undefined : configuration.sourceByWriteKey.get(envelope.writeKey)
  if (claim.speaker === null && envelope.writeKey === null) return noKey
  const speaker = claim.speaker ?? (bodySource ? { source: bodySource, isSecret: false } : null)
  if (speaker === null) return unknownKey
  const { source } = speaker
  if (envelope.writeKey !== null && envelope.writeKey !== source.writeKey)
    deps.count('keys.differed', {}, 1)
  const about = { sourceId: source.id }
  if (!isCollectedIn(deps.region, source, configuration)) return { ...elsewhere, about }
  return mayComeFrom(source, origin) ? speaker : { ...forbiddenOrigin, about }
}

/** A request that names no origin does not come from a page that a browser guards. */
const mayComeFrom = ({ settings: { allowedOrigins } }: Source, origin: string | null) =>
  allowedOrigins.length === 0 ||
  origin === null ||
  allowedOrigins.some((allowed) => allowed.toLowerCase() === origin.toLowerCase())

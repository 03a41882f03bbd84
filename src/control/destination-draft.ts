// What somebody wants a destination to be: the fields they gave, over what it is, over the defaults.
import { randomBytes } from 'node:crypto'
import type { Static } from 'typebox'
import {
  type Destination,
  type DestinationSettings,
  defaultDestinationSettings,
  type NextSecret,
  type Webhook,
} from '../domain/configuration.ts'
import { signingSecret, standardSecretOf } from '../domain/signature.ts'
import { hidden } from './changes.ts'
import { formatDuration } from './duration.ts'
import type { FilterDraft } from './filter.ts'
import type { DestinationPatch, WebhookInput } from './input.ts'

const destinationDefaults = {
  ...defaultDestinationSettings,
  type: 'webhook',
  enabled: true,
  sharedSecret: null,
  nextSharedSecret: null,
  historical: true,
  historicalAfter: '24h',
  webhooks: [],
  filters: [],
} as const

export type DestinationDraft = DestinationSettings & {
  readonly workspaceId: number
  readonly name: string
  readonly type: 'webhook'
  readonly enabled: boolean
  readonly sourceIds: readonly number[]
  readonly sharedSecret: string | null
  readonly nextSharedSecret: NextSecret | null
  readonly historical: boolean
  readonly historicalAfter: string
  readonly webhooks: readonly Webhook[]
  readonly filters: readonly FilterDraft[]
}

type Base = Pick<DestinationDraft, 'workspaceId' | 'name' | 'sourceIds'>

type Given = Omit<Static<typeof DestinationPatch>, 'name' | 'sourceIds'>

/** What is not given stays as it is. */
export const destinationDraft = (
  { workspaceId, name, sourceIds }: Base,
  given: Given,
  current: Destination | null,
): DestinationDraft => {
  const was = current ? asDraft(current) : destinationDefaults
  return {
    workspaceId,
    name,
    sourceIds,
    type: was.type,
    enabled: given.enabled ?? was.enabled,
    order: given.order ?? was.order,
    payload: given.payload ?? was.payload,
    replayOnHeal: given.replayOnHeal ?? was.replayOnHeal,
    signatures: { ...was.signatures, ...given.signatures },
    ...secretsOf(given, was),
    historical: given.historical ?? was.historical,
    historicalAfter: given.historicalAfter ?? was.historicalAfter,
    webhooks: given.webhooks?.map((webhook) => webhookOf(webhook, was.webhooks)) ?? was.webhooks,
    filters: given.filters ?? was.filters,
  }
}

const asDraft = ({ historicalAfterMs, ...rest }: Destination) => ({
  ...rest,
  historicalAfter: formatDuration(historicalAfterMs),
})

type Secrets = Pick<DestinationDraft, 'sharedSecret' | 'nextSharedSecret'>

/** Another shared secret than the one there was ends what was to follow that one. */
const secretsOf = (given: Given, was: Secrets): Secrets => {
  const { sharedSecret = was.sharedSecret, nextSharedSecret: next } = given
  if (next) {
    const { secret, activateAt } = next
    return { sharedSecret, nextSharedSecret: { secret, activateAt: Date.parse(activateAt) } }
  }
  const isKept = next === undefined && sharedSecret === was.sharedSecret
  return { sharedSecret, nextSharedSecret: isKept ? was.nextSharedSecret : null }
}

type Rotation = { readonly secret: string; readonly activateAt: number; readonly now: number }

/** The secret that signs now goes on until the new one's time; where there is none, it signs at once. */
export const rotated = (
  current: Destination,
  { secret, activateAt, now }: Rotation,
): DestinationDraft => {
  const { sourceIds, ...rest } = asDraft(current)
  const signing = signingSecret(current, now)
  const secrets: Secrets =
    signing === null || activateAt <= now
      ? { sharedSecret: secret, nextSharedSecret: null }
      : { sharedSecret: signing, nextSharedSecret: { secret, activateAt } }
  return { ...rest, sourceIds: [...sourceIds], ...secrets }
}

/** What asks for a secret to be made, in place of one. */
const generate = 'generate'

export const newSharedSecret = (): string => standardSecretOf(randomBytes(sharedSecretBytes))

const sharedSecretBytes = 32

/** What is given, with the secret it asks for; `generated` is that secret, to be shown this once. */
export const withSecret = <G extends Pick<Given, 'sharedSecret'>>(
  given: G,
): { readonly given: G; readonly generated: { readonly sharedSecret?: string } } => {
  if (given.sharedSecret !== generate) return { given, generated: {} }
  const sharedSecret = newSharedSecret()
  return { given: { ...given, sharedSecret }, generated: { sharedSecret } }
}

/** A file is applied again and again: one that asks for a secret has it after the first time. */
export const withSecretOnce = <G extends Pick<Given, 'sharedSecret'>>(
  given: G,
  current: Destination | null,
) => {
  const { sharedSecret, ...rest } = given
  return sharedSecret === generate && current && current.sharedSecret !== null
    ? { given: rest, generated: {} }
    : withSecret(given)
}

/** In this order of fields, as it is loaded: what is compared as text must not differ by order alone. */
const webhookOf = (
  { url, headers = {}, ...given }: Static<typeof WebhookInput>,
  were: readonly Webhook[],
): Webhook => {
  const was = were.find((webhook) => webhook.url === url)
  const { concurrencyMax = null, requestsPerSecondMax = null, ca = null } = given
  const { clientCertificate: client } = given
  return {
    url,
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, kept(value, was?.headers[name])]),
    ),
    concurrencyMax,
    requestsPerSecondMax,
    ca,
    clientCertificate: client
      ? { certificate: client.certificate, key: kept(client.key, was?.clientCertificate?.key) }
      : null,
  }
}

/** What is shown as hidden may be sent back as it was shown, to the URL that has it. */
const kept = (value: string, was: string | undefined): string =>
  value === hidden && was !== undefined ? was : value

// What may be set of a destination and of its URLs, as options of `millrace destination add` and `set`.
import { readFile } from 'node:fs/promises'
import { failing, yesOrNo } from './client.ts'
import { type Call, text, texts } from './command.ts'

export const destinationOptions = {
  order: { type: 'string' },
  payload: { type: 'string' },
  'replay-on-heal': { type: 'string' },
  signatures: { type: 'string' },
  header: { type: 'string', multiple: true },
  concurrency: { type: 'string' },
  rate: { type: 'string' },
  ca: { type: 'string' },
  'client-certificate': { type: 'string' },
  'client-key': { type: 'string' },
} as const

export const destinationUsage = [
  '[--order user|none] [--payload spec|full] [--signatures standard,sha256,next|none] [--replay-on-heal yes|no]',
  'with --webhook: [--header "Name: value"…] [--concurrency N] [--rate N] [--ca FILE]',
  '[--client-certificate FILE --client-key FILE]',
].join(' ')

type Given = Readonly<Record<string, unknown>>

/** Those of the destination itself, as the admin API takes them. */
export const destinationGiven = (call: Call): Given => {
  const [order, payload] = [text(call, 'order'), text(call, 'payload')]
  const [heal, signatures] = [text(call, 'replay-on-heal'), text(call, 'signatures')]
  return {
    ...(order === null ? {} : { order }),
    ...(payload === null ? {} : { payload }),
    ...(heal === null ? {} : { replayOnHeal: yesOrNo(heal, 'replay-on-heal') }),
    ...(signatures === null ? {} : { signatures: signaturesOf(signatures) }),
  }
}

const signatureNames = { standard: 'standardWebhooks', sha256: 'sha256', next: 'next' } as const

/** The whole choice: what is not named is switched off. */
const signaturesOf = (given: string): Given => {
  const named = given === 'none' ? [] : given.split(',').map((name) => name.trim())
  const unknown = named.find((name) => !Object.hasOwn(signatureNames, name))
  if (unknown !== undefined)
    throw failing(
      [
        `--signatures takes "none" or some of ${Object.keys(signatureNames).join(',')}, not "${unknown}"`,
      ],
      2,
    )
  return Object.fromEntries(
    Object.entries(signatureNames).map(([name, field]) => [field, named.includes(name)]),
  )
}

/** The URLs given, each with all that is given for URLs; `null` when none is. */
export const webhooksGiven = async (call: Call): Promise<readonly Given[] | null> => {
  const urls = texts(call, 'webhook')
  const options = await urlOptions(call)
  const [first] = Object.keys(options)
  if (urls.length > 0) return urls.map((url) => ({ url, ...options }))
  if (first !== undefined)
    throw failing([`${optionOf[first] ?? first} belongs to the URLs given with --webhook`], 2)
  return null
}

const optionOf: Readonly<Record<string, string>> = {
  headers: '--header',
  concurrencyMax: '--concurrency',
  requestsPerSecondMax: '--rate',
  ca: '--ca',
  clientCertificate: '--client-certificate',
}

const urlOptions = async (call: Call): Promise<Given> => {
  const headers = Object.fromEntries(texts(call, 'header').map(headerOf))
  const [ca, certificate, key] = [
    text(call, 'ca'),
    text(call, 'client-certificate'),
    text(call, 'client-key'),
  ]
  if ((certificate === null) !== (key === null))
    throw failing(['--client-certificate and --client-key belong together'], 2)
  const [concurrencyMax, requestsPerSecondMax] = [number(call, 'concurrency'), number(call, 'rate')]
  return {
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    ...(concurrencyMax === null ? {} : { concurrencyMax }),
    ...(requestsPerSecondMax === null ? {} : { requestsPerSecondMax }),
    ...(ca === null ? {} : { ca: await read(ca) }),
    ...(certificate === null || key === null
      ? {}
      : { clientCertificate: { certificate: await read(certificate), key: await read(key) } }),
  }
}

const read = (path: string): Promise<string> =>
  readFile(path, 'utf8').catch((error: Error) => {
    throw failing([`${path} cannot be read: ${error.message}`], 2)
  })

const number = (call: Call, option: string): number | null => {
  const given = text(call, option)
  if (given === null) return null
  if (!/^\d{1,9}(\.\d{1,9})?$/.test(given)) throw failing([`--${option} takes a number`], 2)
  return Number(given)
}

const headerOf = (line: string): readonly [string, string] => {
  const colon = line.indexOf(':')
  if (colon < 1) throw failing([`a header is written "Name: value", not "${line}"`], 2)
  return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()]
}

export type DestinationSettings = {
  readonly order: string
  readonly payload: string
  readonly replayOnHeal: boolean
  readonly signed: boolean
  readonly signatures: Readonly<Record<string, boolean>>
  readonly nextSecretAt: string | null
  readonly webhooks: readonly {
    readonly url: string
    readonly headers: Readonly<Record<string, string>>
    readonly concurrencyMax: number | null
    readonly requestsPerSecondMax: number | null
    readonly ca: string | null
    readonly clientCertificate: object | null
  }[]
  /** Only in the answer to what generated it. */
  readonly sharedSecret?: string
}

export const destinationRows = (
  destination: DestinationSettings,
): readonly (readonly [string, string])[] => {
  const { signed, signatures, nextSecretAt, sharedSecret } = destination
  const named = Object.entries(signatureNames).filter(([, field]) => signatures[field])
  return [
    ...destination.webhooks.map((webhook) => ['url', urlLine(webhook)] as const),
    ['signed', signed ? 'yes' : 'no'],
    ...(sharedSecret === undefined
      ? []
      : [['shared secret', `${sharedSecret}   (shown this once)`] as const]),
    ...(nextSecretAt === null ? [] : [['next secret signs from', nextSecretAt] as const]),
    ['signatures', signed ? ['X-Signature', ...named.map(([name]) => name)].join(', ') : 'none'],
    ['order', destination.order],
    ['payload', destination.payload],
    ['replay on heal', destination.replayOnHeal ? 'yes' : 'no'],
  ]
}

const urlLine = (webhook: DestinationSettings['webhooks'][number]): string => {
  const { url, headers, concurrencyMax, requestsPerSecondMax, ca, clientCertificate } = webhook
  const about = [
    ...Object.keys(headers),
    ...(concurrencyMax === null ? [] : [`${concurrencyMax} at a time`]),
    ...(requestsPerSecondMax === null ? [] : [`${requestsPerSecondMax} a second`]),
    ...(ca === null ? [] : ['own authorities']),
    ...(clientCertificate === null ? [] : ['client certificate']),
  ]
  return about.length === 0 ? url : `${url}   (${about.join(', ')})`
}

// Segments in a bucket of an S3-compatible store: signed requests, each tried a few times and no more.
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { AwsClient } from 'aws4fetch'
import { Fault } from '../fault.ts'
import type { Place } from './place.ts'
import type { Store, Stored } from './store.ts'

export type Credentials = { readonly accessKeyId: string; readonly secretAccessKey: string }

export type S3Limits = {
  /** Of one request, its body included. */
  readonly requestMs: number
  readonly triesMax: number
  /** Before the second try; doubled before each later one, and up to as much again at random. */
  readonly pauseMs: number
  /** No segment is larger: what claims to be is not read into memory. */
  readonly bytesMax: number
}

export const s3Limits: S3Limits = {
  requestMs: 60_000,
  triesMax: 4,
  pauseMs: 200,
  bytesMax: 134_217_728,
}

type Bucket = Extract<Place, { type: 's3' }>

type Options = {
  readonly place: Bucket
  readonly credentials: Credentials | null
  readonly limits?: Partial<S3Limits> | undefined
}

type Request = {
  readonly method: 'GET' | 'PUT' | 'DELETE'
  readonly url: string
  readonly body?: Uint8Array
  readonly signal?: AbortSignal | undefined
}

export const openBucket = (options: Options): Store => {
  const { place, credentials } = options
  const limits = { ...s3Limits, ...options.limits }
  if (credentials === null)
    throw new Fault(
      'config_invalid',
      'an archive in a bucket needs MILLRACE_ARCHIVE_ACCESS_KEY_ID and MILLRACE_ARCHIVE_SECRET_ACCESS_KEY',
    )
  const client = new AwsClient({ ...credentials, service: 's3', region: place.region, retries: 0 })
  const base = baseOf(place)
  const urlOf = (path: string) => base + encodePath(place.prefix + path)
  const ask = (request: Request) => askPatiently(client, request, limits)
  return {
    put: async (path, body, signal) => {
      await ask({ method: 'PUT', url: urlOf(path), body, signal })
    },
    get: async (path, signal) => {
      const answer = await ask({ method: 'GET', url: urlOf(path), signal })
      return answer.status === 404 ? null : answer.body
    },
    list: (folder, signal) => list(ask, { base, prefix: place.prefix, folder, signal }),
    remove: async (path, signal) => {
      await ask({ method: 'DELETE', url: urlOf(path), signal })
    },
  }
}

const baseOf = ({ endpoint, bucket, region }: Bucket): string =>
  endpoint === null ? `https://${bucket}.s3.${region}.amazonaws.com/` : `${endpoint}/${bucket}/`

const encodePath = (path: string): string => path.split('/').map(encodeURIComponent).join('/')

type Answer = { readonly status: number; readonly body: Buffer }

const askPatiently = async (
  client: AwsClient,
  request: Request,
  limits: S3Limits,
): Promise<Answer> => {
  for (let tries = 1; ; tries += 1) {
    try {
      return await askOnce(client, request, limits)
    } catch (error) {
      const mayHelp = !(error instanceof Fault) || error.retriable
      if (!mayHelp || tries >= limits.triesMax || request.signal?.aborted === true) throw error
      const pauseMs = limits.pauseMs * 2 ** (tries - 1) * (1 + Math.random())
      await sleep(pauseMs, undefined, request.signal ? { signal: request.signal } : {})
    }
  }
}

/** What a request may be answered without being wrong. */
const fine = (status: number, method: string): boolean =>
  (status >= 200 && status < 300) || (status === 404 && method !== 'PUT')

const askOnce = async (
  client: AwsClient,
  { method, url, body, signal }: Request,
  { requestMs, bytesMax }: S3Limits,
): Promise<Answer> => {
  const timeout = AbortSignal.timeout(requestMs)
  const signed = await client.sign(url, {
    method,
    ...(body === undefined ? {} : { body: Buffer.from(body), headers: checksums(body) }),
    redirect: 'error',
  })
  // Given to the signed request, the signal would be forgotten with it, as soon as memory is cleaned up.
  const response = await fetch(signed, {
    signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
  })
  const { status } = response
  // Of what is missing the store's own words are of no use, but they must be read to free the connection.
  const text = await bytesOf(response, fine(status, method) ? bytesMax : errorBytesMax)
  if (fine(status, method)) return { status, body: text }
  const [, code] = /<Code>([^<]{1,100})</.exec(text.toString()) ?? []
  throw new Fault(
    'archive_unavailable',
    `the archive answered ${method} ${new URL(url).pathname} with ${status} ${code ?? ''}`.trimEnd(),
    { retriable: status >= 500 || status === 408 || status === 429 },
  )
}

const errorBytesMax = 65_536

const bytesOf = async (response: Response, bytesMax: number): Promise<Buffer> => {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of response.body ?? []) {
    bytes += part.byteLength
    if (bytes > bytesMax)
      throw new Fault('archive_unavailable', `the archive answered more than ${bytesMax} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts)
}

/** Signed with the request, and kept with the object: what arrives otherwise is refused by the store. */
const checksums = (body: Uint8Array) => {
  const hash = createHash('sha256').update(body).digest()
  return {
    'x-amz-content-sha256': hash.toString('hex'),
    'x-amz-checksum-sha256': hash.toString('base64'),
  }
}

type Listing = {
  readonly base: string
  readonly prefix: string
  readonly folder: string
  readonly signal: AbortSignal | undefined
}

async function* list(
  ask: (request: Request) => Promise<Answer>,
  { base, prefix, folder, signal }: Listing,
): AsyncGenerator<Stored> {
  let after: string | null = null
  do {
    const query = new URLSearchParams({ 'list-type': '2', prefix: prefix + folder })
    if (after !== null) query.set('continuation-token', after)
    // The signature is over %20, and a URL's own way to write a space is +.
    const url = `${base}?${query.toString().replaceAll('+', '%20')}`
    const { status, body } = await ask({ method: 'GET', url, signal })
    if (status === 404) throw new Fault('archive_unavailable', 'the archive has no such bucket')
    const page = body.toString()
    for (const [, entry = ''] of page.matchAll(/<Contents>(.*?)<\/Contents>/gs)) {
      const key = unescaped(between(entry, 'Key'))
      if (key.startsWith(prefix))
        yield { path: key.slice(prefix.length), bytes: Number(between(entry, 'Size')) }
    }
    const token = unescaped(between(page, 'NextContinuationToken'))
    after = between(page, 'IsTruncated') === 'true' && token !== '' ? token : null
  } while (after !== null)
}

const between = (text: string, tag: string): string =>
  new RegExp(`<${tag}>([^<]*)</${tag}>`).exec(text)?.[1] ?? ''

const entities: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&apos;': "'",
  '&amp;': '&',
}

const unescaped = (text: string): string =>
  text
    .replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)))
    .replace(/&(?:lt|gt|quot|apos|amp);/g, (entity) => entities[entity] ?? entity)

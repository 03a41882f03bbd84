// Where an archive is: a folder, or a bucket of an S3-compatible store. Read from one setting; pure.

export type Place =
  | { readonly type: 'folder'; readonly path: string }
  | {
      readonly type: 's3'
      readonly bucket: string
      /** Before every name, ending in a slash; empty when there is none. */
      readonly prefix: string
      /** Requests name the bucket in their path there; `null`: Amazon's own, by host name. */
      readonly endpoint: string | null
      readonly region: string
    }

export type ReadPlace =
  | { readonly ok: true; readonly place: Place }
  | { readonly ok: false; readonly problem: string }

const bucketPattern = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const prefixPattern = /^[A-Za-z0-9!_.*'()/=-]{0,512}$/
const regionPattern = /^[a-z0-9-]{1,40}$/

/** `./archive`, or `s3://bucket/prefix?endpoint=https://store.example&region=eu-west-1`. */
export const readPlace = (text: string): ReadPlace => {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text))
    return { ok: true, place: { type: 'folder', path: text } }
  if (!text.startsWith('s3://') || !URL.canParse(text))
    return refused('is neither a folder nor a URL like s3://bucket/prefix')
  const url = new URL(text)
  const prefix = url.pathname.replace(/^\/+|\/+$/g, '')
  const unknown = [...url.searchParams.keys()].find(
    (name) => !['endpoint', 'region'].includes(name),
  )
  const endpoint = url.searchParams.get('endpoint')
  const region = url.searchParams.get('region') ?? 'us-east-1'
  if (url.username !== '' || url.password !== '')
    return refused(
      'must not hold credentials: set MILLRACE_ARCHIVE_ACCESS_KEY_ID and MILLRACE_ARCHIVE_SECRET_ACCESS_KEY',
    )
  if (url.port !== '' || !bucketPattern.test(url.hostname))
    return refused(`names no bucket: "${url.host}"`)
  if (!prefixPattern.test(prefix)) return refused(`has a prefix of other characters: "${prefix}"`)
  if (unknown !== undefined) return refused(`takes endpoint and region, not "${unknown}"`)
  if (!regionPattern.test(region)) return refused(`names no region: "${region}"`)
  if (endpoint !== null && !isEndpoint(endpoint))
    return refused(`has an endpoint that is no http or https URL: "${endpoint}"`)
  return {
    ok: true,
    place: {
      type: 's3',
      bucket: url.hostname,
      prefix: prefix === '' ? '' : `${prefix}/`,
      endpoint: endpoint === null ? null : endpoint.replace(/\/+$/, ''),
      region,
    },
  }
}

const refused = (problem: string): ReadPlace => ({ ok: false, problem })

const isEndpoint = (text: string): boolean => {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return false
  const { username, password, search, hash } = new URL(text)
  return [username, password, search, hash].every((part) => part === '')
}

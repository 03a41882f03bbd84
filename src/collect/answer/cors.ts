// What browsers ask before and after a page's call: any origin may send, and may read every answer.

type Headers = Readonly<Record<string, string>>

/** What a browser writes; anything else is not reflected. */
const originForm = /^[\x21-\x7e]{1,512}$/
const listForm = /^[\t\x20-\x7e]{1,2048}$/

const usualHeaders =
  'authorization, content-type, content-encoding, x-retry-count, sentat, anonymousid'

export const originOf = (headers: { readonly origin?: string | undefined }): string | null =>
  headers.origin !== undefined && originForm.test(headers.origin) ? headers.origin : null

/** Of an answer: a page must be able to read how long to wait. */
export const corsOf = (origin: string): Headers => ({
  'access-control-allow-origin': origin,
  'access-control-allow-credentials': 'true',
  'access-control-expose-headers': 'Retry-After, X-RateLimit-Reset',
  vary: 'Origin',
})

/** Of a preflight, which carries no key: whether the source takes the origin is said to the call. */
export const preflightOf = (origin: string | null, requested: string | undefined): Headers => ({
  ...(origin === null ? { vary: 'Origin' } : corsOf(origin)),
  'access-control-allow-methods': 'GET, POST, OPTIONS',
  'access-control-allow-headers':
    requested !== undefined && listForm.test(requested) ? requested : usualHeaders,
  'access-control-max-age': '7200',
})

// The admin API as this page asks it, with the token of its tab.

/** What the API refused, or `unreachable`. */
export class Refused extends Error {
  /**
   * @param {string} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message)
    this.code = code
  }
}

const place = 'millrace.token'
const patienceMs = 10_000

export const token = {
  read: () => sessionStorage.getItem(place),
  /** @param {string} value */
  keep: (value) => sessionStorage.setItem(place, value),
  forget: () => sessionStorage.removeItem(place),
}

/**
 * @param {'GET' | 'POST'} method
 * @param {string} path
 * @returns {Promise<any>}
 */
export const ask = async (method, path) => {
  const response = await fetch(path, {
    method,
    headers: { authorization: `Bearer ${token.read() ?? ''}` },
    signal: AbortSignal.timeout(patienceMs),
  }).catch(() => {
    throw new Refused('unreachable', 'Millrace does not answer; this page goes on asking.')
  })
  const body = await response.json().catch(() => ({}))
  if (response.ok) return body
  const { code = `${response.status}`, message = 'the request failed' } = body.error ?? {}
  throw new Refused(code, message)
}

// Where clients reach this installation: what settings documents tell them to send to.

export type Place = {
  readonly protocol: 'http' | 'https'
  /** Host, port and path before the routes: `collector.example/v1`. */
  readonly apiHost: string
}

/** Of the public URL, with or without `/v1` at its end. */
export const placeOf = (publicUrl: string): Place => {
  const [protocol, rest = ''] = publicUrl.split('://')
  return {
    protocol: protocol === 'https' ? 'https' : 'http',
    apiHost: `${rest.replace(/\/+$/, '').replace(/\/v1$/, '')}/v1`,
  }
}

type Asked = {
  readonly protocol: string
  readonly host: string | undefined
  /** Where the connection ended, for a client too old to name a host. */
  readonly local: string
}

/** The host the client itself used, where nothing else is set. */
export const placeAsked = ({ protocol, host, local }: Asked): Place => ({
  protocol: protocol === 'https' ? 'https' : 'http',
  apiHost: `${host !== undefined && hostForm.test(host) ? host : local}/v1`,
})

const hostForm = /^(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/

// The request headers a webhook's own may not replace: ours, and those the connection needs.

const reserved =
  /^(host|content-(encoding|length|type)|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect|proxy-.*|user-agent|x-signature.*)$/i

/** Refused when a webhook is saved, and left out when it is posted to. */
export const isReservedHeader = (name: string): boolean => reserved.test(name)

// The request headers a webhook's own may not replace: ours, and those the connection needs.

const ours = ['content-type', 'user-agent', 'x-signature.*', 'webhook-(id|timestamp|signature)']

/** Who is spoken to, how long the body is, and what one hop tells the next. */
const connection = [
  'host',
  'content-(encoding|length)',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'upgrade',
  'http2-settings',
  'expect',
  'proxy-.*',
]

const reserved = new RegExp(`^(${[...ours, ...connection].join('|')})$`, 'i')

/** Refused when a webhook is saved, and left out when it is posted to. */
export const isReservedHeader = (name: string): boolean => reserved.test(name)

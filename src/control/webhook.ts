// Which URLs and headers a webhook destination may have; what is refused here never meets a socket.
import type { Webhook } from '../domain/configuration.ts'
import { isReservedHeader } from '../domain/reserved-header.ts'
import { urlBytesMax } from '../domain/url-key.ts'
import { type AddressRules, addressCheck, mayBeReached } from '../http/addresses.ts'
import { tlsProblem } from '../http/trust.ts'
import { at, type Problem } from './problem.ts'

export const webhookLimits = {
  webhooksMax: 5,
  urlCharactersMax: urlBytesMax,
  headersMax: 50,
  headerBytesMax: 8_192,
}

type Rules = { readonly addresses: AddressRules }

export const webhooksProblems = (
  webhooks: readonly Webhook[],
  rules: Rules,
  path: string,
): readonly Problem[] => {
  if (webhooks.length === 0)
    return [
      { code: 'webhooks_missing', path, message: 'a webhook destination needs at least one URL' },
    ]
  const problems: Problem[] = webhooks.flatMap((webhook, index) => [
    ...urlProblems(webhook.url, rules, at(at(path, index), 'url')),
    ...headersProblems(webhook.headers, at(at(path, index), 'headers')),
    ...tlsProblems(webhook, at(path, index)),
  ])
  if (webhooks.length > webhookLimits.webhooksMax)
    problems.unshift({
      code: 'webhooks_too_many',
      path,
      message: `a webhook destination takes at most ${webhookLimits.webhooksMax} URLs, this one has ${webhooks.length}`,
    })
  return problems
}

const urlProblems = (text: string, rules: Rules, path: string): readonly Problem[] => {
  const invalid = (why: string): readonly Problem[] => [
    { code: 'webhook_url_invalid', path, message: `the URL ${why}` },
  ]
  // WHATWG parsing forgives much ("http:host", tabs, surrounding spaces): the full form is asked for.
  if (!/^https?:\/\/(?!\/)/i.test(text))
    return invalid('must begin with http:// or https:// and a host')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
  if (/[\s\x00-\x1f\x7f\\]/.test(text) || !text.isWellFormed())
    return invalid('holds white space, a backslash or a control character')
  const url = URL.parse(text)
  if (!url || url.hostname === '') return invalid('cannot be parsed')
  if (url.port === '0') return invalid('names port 0, on which nobody can listen')
  const { urlCharactersMax } = webhookLimits
  const length = Math.max(Buffer.byteLength(text), url.href.length)
  if (length > urlCharactersMax)
    return invalid(
      `takes ${length} characters as it is sent, with those beyond ASCII escaped: shorten it to at most ${urlCharactersMax}`,
    )
  if (url.username !== '' || url.password !== '')
    return invalid('holds credentials: put them into an Authorization header')
  // What a name resolves to is known, and may change, at each connection: it is judged there.
  if (!mayBeReached(url.hostname, addressCheck(rules.addresses)))
    return [
      {
        code: 'webhook_url_private',
        path,
        message: `${url.hostname} is a private, loopback or reserved address: MILLRACE_ALLOW_PRIVATE_DESTINATIONS would allow the first two, MILLRACE_ALLOWED_NETWORKS any`,
      },
    ]
  return []
}

/** Nothing of the texts is repeated: one is a key. */
const tlsProblems = ({ ca, clientCertificate }: Webhook, path: string): readonly Problem[] =>
  [
    { path: at(path, 'ca'), why: ca === null ? null : tlsProblem({ ca }) },
    {
      path: at(path, 'clientCertificate'),
      why: clientCertificate === null ? null : tlsProblem(clientCertificate),
    },
  ].flatMap(({ path, why }) =>
    why === null ? [] : [{ code: 'webhook_tls_invalid', path, message: why } as const],
  )

const headersProblems = (
  headers: Readonly<Record<string, string>>,
  path: string,
): readonly Problem[] => {
  const entries = Object.entries(headers)
  const seen = new Set<string>()
  const problems = entries.flatMap(([name, value]) => {
    const lower = name.toLowerCase()
    const duplicate = seen.has(lower)
    seen.add(lower)
    return headerProblems({ name, value, duplicate }, at(path, name))
  })
  const bytes = entries.reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0)
  if (entries.length > webhookLimits.headersMax || bytes > webhookLimits.headerBytesMax)
    problems.push({
      code: 'headers_too_many',
      path,
      message: `at most ${webhookLimits.headersMax} headers of ${webhookLimits.headerBytesMax} bytes together`,
    })
  return problems
}

type Header = { readonly name: string; readonly value: string; readonly duplicate: boolean }

const headerProblems = ({ name, value, duplicate }: Header, path: string): readonly Problem[] => {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) || name === '__proto__')
    return [{ code: 'header_name_invalid', path, message: `"${name}" is no header name` }]
  if (isReservedHeader(name))
    return [{ code: 'header_reserved', path, message: `Millrace sets ${name} itself` }]
  if (duplicate)
    return [{ code: 'header_duplicate', path, message: `${name} is given twice: case is ignored` }]
  // The value is not repeated: it may be a secret.
  if (!/^[\t\x20-\x7e]*$/.test(value))
    return [
      {
        code: 'header_value_invalid',
        path,
        message: `the value of ${name} holds a line break, a control character or one beyond ASCII`,
      },
    ]
  return []
}

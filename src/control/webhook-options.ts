// What a URL may be given besides its headers, and how a URL with secrets is shown.
import { createHash } from 'node:crypto'
import type { Webhook } from '../domain/configuration.ts'
import type { Json } from '../domain/message.ts'
import { hidden, hideValues } from './changes.ts'
import { at, type Problem } from './problem.ts'

export const optionsProblems = (webhooks: readonly Webhook[], path: string): readonly Problem[] =>
  webhooks.flatMap((webhook, index) => {
    const place = at(path, index)
    return [
      ...duplicateProblems(webhooks, index, place),
      ...hiddenProblems(webhook, place),
      ...plainProblems(webhook, place),
    ]
  })

/** One success of any URL is enough, so that a URL given twice could only be asked twice. */
const duplicateProblems = (
  webhooks: readonly Webhook[],
  index: number,
  path: string,
): readonly Problem[] => {
  // What stands behind # is not sent.
  const normal = (webhook: Webhook | undefined) =>
    URL.parse(webhook?.url ?? '')?.href.replace(/#.*/, '') ?? null
  const own = normal(webhooks[index])
  const first = webhooks.findIndex((webhook) => normal(webhook) === own)
  // One that cannot be parsed is told of elsewhere.
  if (own === null || first === index) return []
  const message = `the URL is given twice: it is number ${first + 1} too`
  return [{ code: 'webhook_url_duplicate', path: at(path, 'url'), message }]
}

const hiddenProblems = (
  { headers, clientCertificate }: Webhook,
  path: string,
): readonly Problem[] => {
  const message = `${hidden} stands for what this very URL has already, and it has nothing here`
  const names = Object.keys(headers).filter((name) => headers[name] === hidden)
  return [
    ...names.map(
      (name): Problem => ({
        code: 'header_value_invalid',
        path: at(at(path, 'headers'), name),
        message,
      }),
    ),
    ...(clientCertificate?.key === hidden
      ? [
          {
            code: 'webhook_tls_invalid' as const,
            path: at(at(path, 'clientCertificate'), 'key'),
            message,
          },
        ]
      : []),
  ]
}

/** Settings that would do nothing are a misunderstanding. */
const plainProblems = (webhook: Webhook, path: string): readonly Problem[] =>
  /^https:/i.test(webhook.url)
    ? []
    : (['ca', 'clientCertificate'] as const)
        .filter((field) => webhook[field] !== null)
        .map((field) => ({
          code: 'webhook_tls_invalid',
          path: at(path, field),
          message: `${field} is for https, and this URL is not`,
        }))

/** Values of headers and keys are credentials: nobody is shown them again. */
export const maskWebhook = ({ headers, clientCertificate, ...rest }: Webhook): Webhook => ({
  ...rest,
  headers: hideValues(headers),
  clientCertificate: clientCertificate && {
    certificate: clientCertificate.certificate,
    key: hidden,
  },
})

/** For the audit log and for differences: what is set, and certificates by their digest. */
export const summaryOf = (webhook: Webhook): Json => {
  const { url, headers, concurrencyMax, requestsPerSecondMax, ca, clientCertificate } = webhook
  return {
    url,
    headers: hideValues(headers),
    ...(concurrencyMax === null ? {} : { concurrencyMax }),
    ...(requestsPerSecondMax === null ? {} : { requestsPerSecondMax }),
    ...(ca === null ? {} : { ca: digestOf(ca) }),
    ...(clientCertificate === null
      ? {}
      : {
          clientCertificate: { certificate: digestOf(clientCertificate.certificate), key: hidden },
        }),
  }
}

const digestOf = (text: string): string =>
  `sha256 ${createHash('sha256').update(text).digest('hex').slice(0, 16)}`

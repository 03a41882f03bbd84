// Whom the outgoing port trusts and who it says it is: TLS contexts by what a URL adds to the system's authorities.
import { createHash, X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContext } from 'node:tls'

/** PEM texts. An authority given here is trusted beside the system's, never instead. */
export type PostTls = {
  readonly ca?: string
  /** The client's own certificate, with the chain a receiver needs, and its key. */
  readonly certificate?: string
  readonly key?: string
}

export type Trust = {
  /** Tells connections apart that must not be shared; empty without anything of its own. */
  keyOf(tls: PostTls | undefined): string
  /** Throws when these texts cannot be used. */
  contextOf(tls: PostTls | undefined): SecureContext
}

const contextsMax = 1_024

export const openTrust = (extraCa?: string): Trust => {
  const keys = new WeakMap<PostTls, string>()
  const contexts = new Map<string, SecureContext>()
  const keyOf = (tls: PostTls | undefined): string => {
    if (!tls) return ''
    let key = keys.get(tls)
    if (key === undefined) {
      const { ca, certificate, key: secret } = tls
      key = ca || certificate || secret ? fingerprint([ca, certificate, secret]) : ''
      keys.set(tls, key)
    }
    return key
  }
  const contextOf = (tls: PostTls | undefined): SecureContext => {
    const key = keyOf(tls)
    const kept = contexts.get(key)
    if (kept) return kept
    const context = open([extraCa, tls?.ca], tls)
    const [oldest] = [...contexts.keys()].filter((other) => other !== '')
    if (contexts.size >= contextsMax && oldest !== undefined) contexts.delete(oldest)
    contexts.set(key, context)
    return context
  }
  return { keyOf, contextOf }
}

const fingerprint = (texts: readonly (string | undefined)[]): string =>
  createHash('sha256')
    .update(JSON.stringify(texts.map((text) => text ?? '')))
    .digest('base64url')

const open = (authorities: readonly (string | undefined)[], tls: PostTls | undefined) => {
  const secure = createSecureContext({
    ...(tls?.certificate ? { cert: tls.certificate } : {}),
    ...(tls?.key ? { key: tls.key } : {}),
  })
  // The option `ca` would replace the system's authorities; naming them all beside ours takes 25 ms and
  // a megabyte for each context, this 0.4 ms and 3 KiB. (test/http/tls.test.ts: both are trusted.)
  const { context } = secure as { context: { addCACert(pem: string): void } }
  for (const pem of authorities) if (pem) context.addCACert(pem)
  return secure
}

/** Why these texts cannot be used, in words that hold nothing of them; `null`: they can. */
export const tlsProblem = (tls: PostTls): string | null => {
  const { ca, certificate, key } = tls
  if (ca !== undefined && !areCertificates(ca)) return 'the authority is no certificate in PEM'
  if (certificate && !areCertificates(certificate)) return 'the certificate is none in PEM'
  if (Boolean(certificate) !== Boolean(key)) return 'a client certificate and its key go together'
  try {
    open([ca], tls)
    return null
  } catch {
    return 'the key is none in PEM without a passphrase, or not that of the certificate'
  }
}

const areCertificates = (pem: string): boolean => {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)
  try {
    return (blocks ?? ['']).every((block) => new X509Certificate(block).raw.length > 0)
  } catch {
    return false
  }
}

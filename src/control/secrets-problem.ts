// Which secrets a destination may be given, and whether this installation can keep them.
import type { Destination, Webhook } from '../domain/configuration.ts'
import { isStandardSecret } from '../domain/signature.ts'
import type { DestinationDraft } from './destination-draft.ts'
import type { Editing } from './edit.ts'
import { isText } from './name.ts'
import { at, type Problem } from './problem.ts'

type Wish = {
  readonly draft: DestinationDraft
  readonly current: Destination | null
  readonly path: string
}

export const secretsProblems = (
  { keyring }: Pick<Editing, 'keyring'>,
  wish: Wish,
): readonly Problem[] => [
  ...formProblems(wish),
  ...unsignedProblems(wish),
  ...(keyring.current === null ? unkeptProblems(wish) : []),
]

const formProblems = ({ draft, path }: Wish): readonly Problem[] => {
  const { sharedSecret, nextSharedSecret: next, signatures } = draft
  const nextPath = at(path, 'nextSharedSecret')
  return [
    ...secretProblems(sharedSecret, signatures, at(path, 'sharedSecret')),
    ...(next === null ? [] : secretProblems(next.secret, signatures, at(nextPath, 'secret'))),
    ...(next === null || Number.isFinite(next.activateAt)
      ? []
      : [
          {
            code: 'activate_at_invalid' as const,
            path: at(nextPath, 'activateAt'),
            message: 'the time is none in ISO 8601, like 2026-03-01T12:00:00Z',
          },
        ]),
  ]
}

const secretProblems = (
  secret: string | null,
  { standardWebhooks }: DestinationDraft['signatures'],
  path: string,
): readonly Problem[] => {
  const invalid = (message: string): readonly Problem[] => [
    { code: 'shared_secret_invalid', path, message },
  ]
  if (secret === null) return []
  if (secret === '' || secret.length > 1_024 || !isText(secret))
    return invalid(
      'a shared secret has 1 to 1024 characters and no control characters; null turns signing off',
    )
  return standardWebhooks && !isStandardSecret(secret)
    ? invalid('for Standard Webhooks a secret that begins with whsec_ is base64 of 24 to 64 bytes')
    : []
}

/** Who asked for a signature must not be sent messages without. */
const unsignedProblems = ({ draft, path }: Wish): readonly Problem[] => {
  const { sharedSecret, nextSharedSecret, signatures } = draft
  if (sharedSecret !== null) return []
  const missing = (field: string, what: string): Problem => ({
    code: 'shared_secret_missing',
    path: at(path, field),
    message: `${what} a shared secret, and there is none`,
  })
  return [
    ...(nextSharedSecret === null ? [] : [missing('nextSharedSecret', 'the next secret follows')]),
    ...(signatures.standardWebhooks || signatures.sha256
      ? [missing('signatures', 'these headers are signed with')]
      : []),
  ]
}

/** What is there already stays readable: only what is new is refused. */
const unkeptProblems = ({ draft, current, path }: Wish): readonly Problem[] => {
  const unkept = (place: string, what: string): Problem => ({
    code: 'encryption_key_missing',
    path: place,
    message: `${what} would be kept unencrypted: set MILLRACE_SECRET_KEY for every process (openssl rand -base64 32) and start again`,
  })
  const { sharedSecret, nextSharedSecret } = draft
  return [
    ...(sharedSecret !== null && sharedSecret !== (current?.sharedSecret ?? null)
      ? [unkept(at(path, 'sharedSecret'), 'the shared secret')]
      : []),
    ...(nextSharedSecret !== null
      ? [unkept(at(path, 'nextSharedSecret'), 'the next shared secret')]
      : []),
    ...draft.webhooks.flatMap((webhook, index) => {
      const place = at(at(path, 'webhooks'), index)
      return [
        ...(hasNewHeaders(webhook, current) ? [unkept(at(place, 'headers'), 'headers')] : []),
        ...(webhook.clientCertificate !== null
          ? [unkept(at(place, 'clientCertificate'), 'the key of a client certificate')]
          : []),
      ]
    }),
  ]
}

const hasNewHeaders = ({ url, headers }: Webhook, current: Destination | null): boolean => {
  const was = current?.webhooks.find((webhook) => webhook.url === url)?.headers ?? {}
  return Object.entries(headers).some(([name, value]) => was[name] !== value)
}

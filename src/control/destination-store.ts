// Destinations and their URLs in Postgres: every write of them, and how they are read; secrets sealed.
import type { ClientCertificate, Destination, Webhook } from '../domain/configuration.ts'
import type { Sql } from '../postgres/sql.ts'
import { hidden, hideValues } from './changes.ts'
import { type Keyring, markOf, type Opening, opening, seal } from './secret.ts'

type NewDestination = Omit<Destination, 'id'>

export const insertDestination = async (
  tx: Sql,
  destination: NewDestination,
  keyring: Keyring,
): Promise<number> => {
  const id = await nextId(tx)
  await tx.query(
    `insert into destination (name, type, enabled, shared_secret, historical, historical_after_ms, filters,
                              send_order, payload, replay_on_heal, sign_standard, sign_sha256, sign_next,
                              next_secret_at, sealed, id, workspace_id)
     overriding system value
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
    [...columnsOf({ ...destination, id }, keyring), destination.workspaceId],
  )
  await insertWebhooks(tx, { ...destination, id }, keyring)
  await insertSources(tx, id, destination.sourceIds)
  return id
}

/** Ahead of the row: what is sealed is bound to its id. */
const nextId = async (tx: Sql): Promise<number> => {
  const { rows } = await tx.query<{ id: number }>(
    "select nextval(pg_get_serial_sequence('destination', 'id'))::int as id",
  )
  return (rows[0] as { id: number }).id
}

export const updateDestination = async (
  tx: Sql,
  destination: Destination,
  keyring: Keyring,
): Promise<void> => {
  const { id } = destination
  await tx.query(
    `update destination
        set name = $1, type = $2, enabled = $3, shared_secret = $4, historical = $5, historical_after_ms = $6,
            filters = $7, send_order = $8, payload = $9, replay_on_heal = $10, sign_standard = $11,
            sign_sha256 = $12, sign_next = $13, next_secret_at = $14, sealed = $15
      where id = $16`,
    columnsOf(destination, keyring),
  )
  await tx.query('delete from webhook where destination_id = $1', [id])
  await insertWebhooks(tx, destination, keyring)
  await tx.query('delete from destination_source where destination_id = $1', [id])
  await insertSources(tx, id, destination.sourceIds)
}

const columnsOf = (destination: Destination, keyring: Keyring): readonly unknown[] => {
  const { id, sharedSecret, nextSharedSecret, signatures } = destination
  const isSealed = nextSharedSecret !== null || (sharedSecret !== null && keyring.current !== null)
  const secrets: DestinationSecrets = { sharedSecret, next: nextSharedSecret?.secret ?? null }
  return [
    destination.name,
    destination.type,
    destination.enabled,
    isSealed ? null : sharedSecret,
    destination.historical,
    destination.historicalAfterMs,
    JSON.stringify(destination.filters),
    destination.order,
    destination.payload,
    destination.replayOnHeal,
    signatures.standardWebhooks,
    signatures.sha256,
    signatures.next,
    nextSharedSecret && new Date(nextSharedSecret.activateAt),
    isSealed ? seal(keyring, placeOf(id), JSON.stringify(secrets)) : null,
    id,
  ]
}

/** What is sealed of a destination, and of each of its URLs. */
type DestinationSecrets = { readonly sharedSecret: string | null; readonly next: string | null }
type WebhookSecrets = { readonly headers: Webhook['headers']; readonly key: string | null }

/** Part of what is sealed: as told in faults, and never to be changed. */
const placeOf = (id: number) => `destination ${id}`
const webhookPlaceOf = (id: number, place: number) => `URL ${place} of destination ${id}`

export const deleteDestination = async (tx: Sql, id: number): Promise<void> => {
  await tx.query('delete from destination where id = $1', [id])
}

const insertWebhooks = async (tx: Sql, { id, webhooks }: Destination, keyring: Keyring) => {
  const rows = webhooks.map((webhook, index) =>
    rowOf(webhook, webhookPlaceOf(id, index + 1), keyring),
  )
  await tx.query(
    `insert into webhook (destination_id, place, url, headers, concurrency_max, requests_per_second_max, ca,
                          client_certificate, sealed)
     select $1, w.place, w.url, w.headers, w.concurrency_max, w.requests_per_second_max, w.ca, w.certificate, w.sealed
       from unnest($2::text[], $3::json[], $4::int[], $5::float8[], $6::text[], $7::text[], $8::bytea[])
            with ordinality as w(url, headers, concurrency_max, requests_per_second_max, ca, certificate, sealed, place)`,
    [
      id,
      webhooks.map(({ url }) => url),
      rows.map(({ headers }) => JSON.stringify(headers)),
      webhooks.map(({ concurrencyMax }) => concurrencyMax),
      webhooks.map(({ requestsPerSecondMax }) => requestsPerSecondMax),
      webhooks.map(({ ca }) => ca),
      webhooks.map(({ clientCertificate }) => clientCertificate?.certificate ?? null),
      rows.map(({ sealed }) => sealed),
    ],
  )
}

const rowOf = ({ headers, clientCertificate }: Webhook, place: string, keyring: Keyring) => {
  const names = Object.keys(headers)
  const isSealed = clientCertificate !== null || (names.length > 0 && keyring.current !== null)
  if (!isSealed) return { headers, sealed: null }
  const secrets: WebhookSecrets = { headers, key: clientCertificate?.key ?? null }
  return {
    headers: Object.fromEntries(names.map((name) => [name, null])),
    sealed: seal(keyring, place, JSON.stringify(secrets)),
  }
}

const insertSources = async (tx: Sql, id: number, sourceIds: ReadonlySet<number>) => {
  await tx.query(
    'insert into destination_source (destination_id, source_id) select $1, unnest($2::int[])',
    [id, [...sourceIds]],
  )
}

type WebhookRow = Omit<Webhook, 'headers' | 'clientCertificate'> & {
  readonly headers: Readonly<Record<string, string | null>>
  readonly certificate: string | null
  /** In hex: it comes within JSON. */
  readonly sealed: string | null
}

type Row = Omit<
  Destination,
  'sourceIds' | 'historicalAfterMs' | 'signatures' | 'nextSharedSecret' | 'webhooks'
> & {
  readonly sourceIds: readonly number[]
  readonly historicalAfterMs: bigint
  readonly standardWebhooks: boolean
  readonly sha256: boolean
  readonly next: boolean
  readonly nextSecretAt: Date | null
  readonly sealed: Buffer | null
  readonly webhooks: readonly WebhookRow[]
}

/** Without a keyring every secret reads `(hidden)`: enough to show what there is, nothing to sign with. */
export const loadDestinations = async (
  sql: Sql,
  keyring: Keyring | null,
): Promise<readonly Destination[]> => {
  const { rows } = await sql.query<Row>(
    `select d.id, d.workspace_id as "workspaceId", d.name, d.type, d.enabled,
            d.shared_secret as "sharedSecret", d.sealed, d.next_secret_at as "nextSecretAt", d.historical,
            d.historical_after_ms as "historicalAfterMs", d.filters,
            d.send_order as order, d.payload, d.replay_on_heal as "replayOnHeal",
            d.sign_standard as "standardWebhooks", d.sign_sha256 as sha256, d.sign_next as next,
            coalesce(s.ids, '{}') as "sourceIds", coalesce(w.webhooks, '[]') as webhooks
       from destination d
       left join (select destination_id, array_agg(source_id order by source_id) as ids
                    from destination_source group by destination_id) s on s.destination_id = d.id
       left join (select destination_id,
                         json_agg(json_build_object(
                           'url', url, 'headers', headers, 'concurrencyMax', concurrency_max,
                           'requestsPerSecondMax', requests_per_second_max, 'ca', ca,
                           'certificate', client_certificate, 'sealed', encode(sealed, 'hex')) order by place) as webhooks
                    from webhook group by destination_id) w on w.destination_id = d.id
      order by d.id`,
  )
  const opener = keyring && opening(keyring)
  const destinations = rows.map((row) => destinationOf(row, opener))
  opener?.end()
  return destinations
}

const destinationOf = (row: Row, opener: Opening | null): Destination => {
  const { standardWebhooks, sha256, next, nextSecretAt, sealed, ...rest } = row
  const secrets = secretsOf(row, opener)
  return {
    ...rest,
    sharedSecret: secrets.sharedSecret,
    nextSharedSecret:
      nextSecretAt === null || secrets.next === null
        ? null
        : { secret: secrets.next, activateAt: nextSecretAt.getTime() },
    sourceIds: new Set(row.sourceIds),
    historicalAfterMs: Number(row.historicalAfterMs),
    signatures: { standardWebhooks, sha256, next },
    webhooks: row.webhooks.map((webhook, index) =>
      webhookOf(webhook, { place: webhookPlaceOf(row.id, index + 1), opener }),
    ),
  }
}

const secretsOf = (row: Row, opener: Opening | null): DestinationSecrets => {
  const { sealed, sharedSecret, nextSecretAt } = row
  if (opener === null) {
    const isSigned = sealed !== null || sharedSecret !== null
    return { sharedSecret: isSigned ? hidden : null, next: nextSecretAt === null ? null : hidden }
  }
  if (sealed === null) return { sharedSecret, next: null }
  return JSON.parse(opener.open(placeOf(row.id), sealed)) as DestinationSecrets
}

type At = { readonly place: string; readonly opener: Opening | null }

const webhookOf = (row: WebhookRow, at: At): Webhook => {
  const { url, concurrencyMax, requestsPerSecondMax, ca, certificate } = row
  const { headers, key } = webhookSecretsOf(row, at)
  const clientCertificate: ClientCertificate | null =
    certificate === null || key === null ? null : { certificate, key }
  return { url, headers, concurrencyMax, requestsPerSecondMax, ca, clientCertificate }
}

const webhookSecretsOf = (row: WebhookRow, { place, opener }: At): WebhookSecrets => {
  if (opener === null) return { headers: hideValues(row.headers), key: hidden }
  if (row.sealed === null) return { headers: row.headers as Webhook['headers'], key: null }
  return JSON.parse(opener.open(place, Buffer.from(row.sealed, 'hex'))) as WebhookSecrets
}

/** Of destinations that hold secrets unsealed, or sealed with another key than the current one. */
export const findUnsealed = async (sql: Sql, keyring: Keyring): Promise<readonly number[]> => {
  const mark = keyring.current === null ? null : markOf(keyring.current)
  const { rows } = await sql.query<{ id: number }>(
    `select id from destination where shared_secret is not null or substring(sealed from 1 for $2) <> $1
      union
     select destination_id from webhook
      where (sealed is null and headers::text <> '{}') or substring(sealed from 1 for $2) <> $1
      order by id`,
    [mark, mark?.length ?? 0],
  )
  return rows.map(({ id }) => id)
}

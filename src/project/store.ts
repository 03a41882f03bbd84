// The projector's own SQL: positions under lock, identities, merges and keys of new users.

import { numberList, textList } from '../audience/lists.ts'
import { entombUsers } from '../audience/store.ts'
import type { Identity } from '../domain/identity.ts'
import { identityKinds } from '../domain/identity.ts'
import type { Topic } from '../log/log.ts'
import {
  copyOf,
  putInt2,
  putInt4,
  putInt8,
  putText,
  type RowForm,
} from '../postgres/binary-copy.ts'
import { type Connection, type Sql, sqlState } from '../postgres/sql.ts'
import type { Folded } from './fold.ts'
import type { AddedIdentity } from './people.ts'

export type Partition = { readonly topic: Topic; readonly partition: number }

export type LockedPosition = Partition & { readonly next: bigint; readonly epoch: bigint }

/** The first rung of the lock order: rows of `position` by (topic, partition). */
export const lockPositions = async (
  tx: Sql,
  wanted: readonly Partition[],
): Promise<readonly LockedPosition[]> => {
  const { rows } = await tx.query<LockedPosition>(
    `select p.topic, p.partition, p.next, p.epoch
       from unnest($1::text[], $2::int[]) as w(topic, partition)
       join position p on p.reader = 'project' and p.topic = w.topic and p.partition = w.partition
      order by p.topic, p.partition for update of p`,
    [wanted.map(({ topic }) => topic), wanted.map(({ partition }) => partition)],
  )
  return rows
}

/** By identity_pkey, one probe each, neighbours after one another; in the order asked. Unknown ones are `null`. */
export const findIdentities = async (
  sql: Sql,
  identities: readonly Identity[],
): Promise<readonly (number | null)[]> => {
  if (identities.length === 0) return []
  const found: (number | null)[] = identities.map(() => null)
  const { rows } = await sql.query<{ found: Buffer | null }>(
    `select string_agg(int4send(w.at::int) || int8send(i.user_key), ''::bytea) as found
       from (select * from unnest($1::int[], $2::smallint[], $3::text[]) with ordinality
               as w(workspace_id, kind, value, at) order by value collate "C") w
       join identity i on i.workspace_id = w.workspace_id and i.kind = w.kind
        and i.value = w.value collate "C"`,
    [
      numberList(identities.map(({ workspaceId }) => workspaceId)),
      numberList(identities.map(({ kind }) => identityKinds[kind])),
      textList(identities.map(({ value }) => value)),
    ],
  )
  // One value for all: the driver's work for each row is most of what a row costs.
  const bytes = rows[0]?.found ?? Buffer.alloc(0)
  for (let at = 0; at < bytes.length; at += 12)
    found[bytes.readInt32BE(at) - 1] = Number(bytes.readBigInt64BE(at + 4))
  return found
}

/** Inserts in the order of keys; `false` when somebody else has made one of them meanwhile. */
export const addIdentities = async (
  tx: Connection,
  added: Folded['identities'],
): Promise<boolean> => {
  if (added.length === 0) return true
  const ordered = added.toSorted(({ identity: left }, { identity: right }) =>
    compareIdentities(left, right),
  )
  try {
    await tx.copyIn(
      'copy identity (workspace_id, kind, value, user_key) from stdin (format binary)',
      copyOf(ordered, identityForm),
    )
    return true
  } catch (error) {
    if (sqlState(error) === uniqueViolation) return false
    throw error
  }
}

const uniqueViolation = '23505'

const compareIdentities = (left: Identity, right: Identity): number =>
  left.workspaceId - right.workspaceId ||
  identityKinds[left.kind] - identityKinds[right.kind] ||
  (left.value < right.value ? -1 : 1)

const identityForm: RowForm<AddedIdentity> = {
  fields: 4,
  most: ({ identity }) => 30 + identity.value.length * 3,
  write: (to, { identity: { workspaceId, kind, value }, key }, start) => {
    let at = putInt4(to, workspaceId, start)
    at = putInt2(to, identityKinds[kind], at)
    at = putText(to, value, at)
    return putInt8(to, key, at)
  },
}

/** Tombstones the vanished, hands their identities over and records the merges in order. */
export const saveMerges = async (
  tx: Connection,
  { vanished, merges }: Pick<Folded, 'vanished' | 'merges'>,
): Promise<void> => {
  if (merges.length > 0) await recordMerges(tx, merges)
  if (vanished.length === 0) return
  await tx.query(
    `update identity i set user_key = m.into_key
       from unnest($1::bigint[], $2::bigint[]) as m(from_key, into_key)
      where i.user_key = m.from_key`,
    [vanished.map(({ user }) => user.key), vanished.map(({ into }) => into)],
  )
  await entombUsers(tx, vanished)
}

const recordMerges = async (tx: Sql, merges: Folded['merges']): Promise<void> => {
  await tx.query(
    `insert into merge (workspace_id, from_key, into_key, topic, partition, log_offset)
     select workspace_id, from_key, into_key, topic, partition, log_offset
       from unnest($1::int[], $2::bigint[], $3::bigint[], $4::text[], $5::int[], $6::bigint[])
         with ordinality as m(workspace_id, from_key, into_key, topic, partition, log_offset, at)
      order by at`,
    [
      merges.map(({ workspaceId }) => workspaceId),
      merges.map(({ from }) => from),
      merges.map(({ into }) => into),
      merges.map(({ topic }) => topic),
      merges.map(({ partition }) => partition),
      merges.map(({ offset }) => offset),
    ],
  )
}

/** What a rebuild follows. After the users are locked: who decides of the same identity comes later. */
export const recordDecisions = async (
  tx: Sql,
  { decisions }: Pick<Folded, 'decisions'>,
): Promise<void> => {
  if (decisions.length === 0) return
  await tx.query(
    `insert into identity_order (topic, partition, log_offset, previous)
     select topic, partition, log_offset, previous
       from unnest($1::text[], $2::int[], $3::bigint[], $4::smallint[])
         with ordinality as d(topic, partition, log_offset, previous, at)
      order by at`,
    [
      textList(decisions.map(({ topic }) => topic)),
      numberList(decisions.map(({ partition }) => partition)),
      decisions.map(({ offset }) => offset),
      decisions.map(({ previous }) => previous && identityKinds[previous]),
    ],
  )
}

const keysInBlock = 1_000

/** Keys of new users, from blocks that this process alone has; unused ones are never used. */
export const keySupply = (sql: Sql) => {
  const ready: number[] = []
  let reserved = 0
  return {
    /** `next` can be called `count` times until they are released; batches may overlap. */
    reserve: async (count: number): Promise<{ next: () => number; release: () => void }> => {
      reserved += count
      const blocks = Math.ceil((reserved - ready.length) / keysInBlock)
      try {
        if (blocks > 0) for (const key of await takeKeys(sql, blocks)) ready.push(key)
      } catch (error) {
        reserved -= count
        throw error
      }
      let left = count
      return {
        next: () => {
          left -= 1
          reserved -= 1
          return ready.pop() as number
        },
        release: () => {
          reserved -= left
          left = 0
        },
      }
    },
  }
}

const takeKeys = async (sql: Sql, blocks: number): Promise<readonly number[]> => {
  const { rows } = await sql.query<{ block: number }>(
    `select nextval('user_key')::float8 as block from generate_series(1, $1)`,
    [blocks],
  )
  return rows.flatMap(({ block }) =>
    Array.from({ length: keysInBlock }, (_, at) => block * keysInBlock + at),
  )
}

/** The projector's position.state: the highest receivedAt folded, epoch ms in 8 bytes. */
export const foldedState = (receivedAt: number): Buffer => {
  const state = Buffer.alloc(8)
  state.writeBigInt64BE(BigInt(receivedAt))
  return state
}

export const readFoldedState = (state: Buffer | null): number =>
  state === null ? 0 : Number(state.readBigInt64BE())

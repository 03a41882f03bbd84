// What a member shows of itself to its group, and what it sees of the others.
import type { Pool } from '../postgres/sql.ts'
import { type Group, type Place, placeOf } from './log.ts'
import {
  beat,
  type Claimed,
  claimPlaces,
  deleteMembers,
  freePlaces,
  insertMember,
  lockGroup,
  notifyGroup,
  type SeenMember,
  selectMembers,
  selectPlaces,
} from './postgres-group-store.ts'
import { openSession, type Session } from './postgres-session.ts'
import { share } from './postgres-share.ts'

export type Presence = {
  readonly group: string
  readonly member: number
  readonly session: Session
  /** Each other's beat, and how long we have watched it stand still. */
  readonly beats: Map<number, { readonly beat: bigint; readonly stillMs: number }>
  lookedAt: number
}

const transact = async <R>({ connection }: Session, work: () => Promise<R>): Promise<R> => {
  await connection.query('begin')
  const result = await work()
  await connection.query('commit')
  return result
}

/** A failure leaves the session in an unknown state: the caller ends it. */
export const enter = async (
  pool: Pool,
  { name, topics }: Group,
  idleMs: number,
): Promise<Presence> => {
  const session = await openSession(pool)
  try {
    // A process that is frozen while it looks at the group would hold its locks against all others.
    await session.connection.query(`set idle_in_transaction_session_timeout = ${idleMs}`)
    const member = await transact(session, () => insertMember(session.connection, name, topics))
    await notifyGroup(session.connection, name)
    return { group: name, member, session, beats: new Map(), lookedAt: performance.now() }
  } catch (error) {
    void session.end()
    throw error
  }
}

/** Frees all leases and tells the others. */
export const leave = async ({ session, group, member }: Presence): Promise<void> => {
  await deleteMembers(session.connection, [member])
  await notifyGroup(session.connection, group)
}

type Look = {
  readonly beatMs: number
  readonly deadAfterMs: number
  /** Whether this member still takes partitions. */
  readonly taking: boolean
  readonly held: ReadonlySet<string>
}

export type Sight = {
  readonly owned: ReadonlySet<string>
  readonly claimed: readonly Claimed[]
  readonly release: readonly Place[]
}

/** Beats, buries the dead, claims what is due; throws when this member was itself declared dead. */
export const tick = (presence: Presence, look: Look): Promise<Sight> =>
  transact(presence.session, async () => {
    const { group, member } = presence
    const { connection } = presence.session
    await lockGroup(connection, group)
    if (!(await beat(connection, member)))
      throw new Error('the group has declared this member dead')
    const members = await selectMembers(connection, group)
    const dead = deadOf(presence, members, look)
    if (dead.length > 0) await deleteMembers(connection, dead)
    const living = members.filter(({ number }) => !dead.includes(number))
    const places = await selectPlaces(connection, group)
    const owned = places.filter(({ owner }) => owner === member)
    const strays = owned.filter((place) => !look.held.has(placeOf(place)))
    if (strays.length > 0) await freePlaces(connection, { group, member }, strays)
    const freed = places.map((place) =>
      strays.includes(place) || dead.includes(place.owner ?? 0) ? { ...place, owner: null } : place,
    )
    const { claim, release } = share({ me: member, members: living, places: freed })
    // What is held here without being ours waits for its release to end.
    const wanted = look.taking ? claim.filter((place) => !look.held.has(placeOf(place))) : []
    const claimed =
      wanted.length > 0 ? await claimPlaces(connection, { group, member }, wanted) : []
    if (dead.length > 0 || strays.length > 0) await notifyGroup(connection, group)
    return { owned: new Set(owned.map(placeOf)), claimed, release }
  })

/**
 * The disconnected, and those whose beat has stood still too long. A look adds one beat at most: who
 * was itself held up for long, as a stopped or overloaded process is, has not watched meanwhile.
 */
const deadOf = (
  presence: Presence,
  members: readonly SeenMember[],
  { beatMs, deadAfterMs }: Look,
): readonly number[] => {
  const { beats } = presence
  const now = performance.now()
  const watchedMs = Math.min(now - presence.lookedAt, beatMs)
  presence.lookedAt = now
  const dead: number[] = []
  for (const { number, beat, connected } of members) {
    if (number === presence.member) continue
    const known = beats.get(number)
    const stillMs = known?.beat === beat ? known.stillMs + watchedMs : 0
    beats.set(number, { beat, stillMs })
    if (!connected || stillMs > deadAfterMs) dead.push(number)
  }
  return dead
}

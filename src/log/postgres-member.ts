// A member of a group on the Postgres log: beats, takes its fair share, gives back, and dies loudly.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { Fault } from '../fault.ts'
import type { Pool } from '../postgres/sql.ts'
import { type Group, type Lease, type Membership, placeOf, type Reader } from './log.ts'
import { feed, type Held, lookAgain } from './postgres-feed.ts'
import {
  type Claimed,
  channelName,
  commitPlace,
  freePlaces,
  notifyGroup,
} from './postgres-group-store.ts'
import { enter, leave, type Presence, tick } from './postgres-presence.ts'
import { signal, type Wakes } from './postgres-wake.ts'
import { within } from './within.ts'

export const memberLimits = {
  /** Looks at the group at least this often, and shows that it lives. */
  beatMs: 1_000,
  /** A beat that takes longer means that the leases may be gone. */
  beatTimeoutMs: 4_000,
  /** Postgres ends the session of a member that stands still within a beat for so long; well less than the above. */
  idleMs: 2_000,
  /** Others take the partitions of a member whose beat has stood still this long. */
  deadAfterMs: 10_000,
  /** How long a partition to be given back waits for the handle in hand. */
  releaseMs: 2_000,
  retryMs: 500,
  /** Without a notification, looks for entries again after this long. */
  pollMs: 500,
} as const

export type MemberLimits = { readonly [name in keyof typeof memberLimits]: number }

export type MemberDeps = {
  readonly pool: Pool
  readonly logger: Logger | undefined
  readonly wakes: Wakes
  /** Makes the log's partitions, once. */
  readonly opened: () => Promise<unknown>
  readonly limits: MemberLimits
}

type State = {
  readonly deps: MemberDeps
  readonly group: Group
  readonly gained: (lease: Lease) => Promise<Reader>
  readonly held: Map<string, Held>
  readonly over: AbortController
  readonly fetching: ReturnType<typeof signal>
  readonly looking: ReturnType<typeof signal>
  /** Work of the readers that no partition held shows: gaining, handles of partitions lost. */
  readonly strays: Set<Promise<void>>
  presence: Presence | null
  phase: 'joined' | 'stopping' | 'gone'
  readonly die: (error: unknown) => void
}

export const joinGroup = (
  deps: MemberDeps,
  group: Group,
  gained: (lease: Lease) => Promise<Reader>,
): Membership => {
  const ended = Promise.withResolvers<void>()
  const state: State = {
    deps,
    group,
    gained,
    held: new Map(),
    over: new AbortController(),
    fetching: signal(),
    looking: signal(),
    strays: new Set(),
    presence: null,
    phase: 'joined',
    die: (error) => {
      if (state.phase === 'gone') return
      state.phase = 'gone'
      finish(state)
      ended.reject(error)
    },
  }
  const unsubscribe = deps.wakes.on((name) => woken(state, name))
  const feeding = feed({
    pool: deps.pool,
    logger: deps.logger,
    bytesMax: group.bytesMax,
    pollMs: deps.limits.pollMs,
    held: () => [...state.held.values()],
    signal: state.fetching,
    die: state.die,
    over: state.over.signal,
  })
  const living = live(state).finally(unsubscribe)
  const stop = async () => {
    if (state.phase === 'joined') state.phase = 'stopping'
    state.over.abort()
    state.fetching.wake()
    await feeding
    // The beat goes on meanwhile: a handle in hand may still commit.
    await handlesOf(state)
    state.phase = 'gone'
    finish(state)
    await living
    ended.resolve()
  }
  let stopped: Promise<void> | null = null
  return {
    stop: () => {
      stopped ??= stop()
      return stopped
    },
    done: ended.promise,
  }
}

const woken = ({ group, held, fetching, looking }: State, name: string | null) => {
  if (name === null || name === channelName(group.name)) looking.wake()
  const told = [...held.values()].filter(({ lease }) => name === null || lease.topic === name)
  lookAgain(told)
  if (told.length > 0) fetching.wake()
}

const handlesOf = async ({ held, strays }: State) => {
  await Promise.all([...[...held.values()].map(({ handling }) => handling), ...strays])
}

const finish = (state: State) => {
  loseAll(state)
  state.over.abort()
  state.fetching.wake()
  state.looking.wake()
}

/** Beats and looks at the group until the member is gone; whatever fails costs the leases, not the member. */
const live = async (state: State) => {
  const { deps, looking } = state
  while (state.phase !== 'gone') {
    try {
      await look(state)
      await looking.wait(deps.limits.beatMs)
    } catch (error) {
      loseAll(state)
      deps.logger?.warn({ err: error, group: state.group.name }, 'log_membership.interrupted')
      const presence = state.presence
      state.presence = null
      void presence?.session.end()
      await sleep(deps.limits.retryMs)
    }
  }
  const { presence } = state
  if (presence)
    await within(deps.limits.beatTimeoutMs, 'leaving', leave(presence)).catch(() => undefined)
  // Without goodbye the others notice the ended session by themselves.
  await presence?.session.end()
}

const look = async (state: State) => {
  const { deps, held } = state
  const presence: Presence = state.presence ?? (await enterInTime(state))
  state.presence = presence
  const seen = await within(
    deps.limits.beatTimeoutMs,
    'heartbeat',
    tick(presence, {
      beatMs: deps.limits.beatMs,
      deadAfterMs: deps.limits.deadAfterMs,
      taking: state.phase === 'joined',
      held: new Set(held.keys()),
    }),
  )
  if (state.phase === 'gone') return
  for (const each of [...held.values()])
    if (!seen.owned.has(placeOf(each.lease)) && !each.releasing) lose(state, each)
  for (const claimed of seen.claimed) gain(state, presence, claimed)
  for (const place of seen.release) {
    const each = held.get(placeOf(place))
    if (each && !each.releasing) void release(state, presence, each)
  }
}

const enterInTime = async ({ deps, group }: State): Promise<Presence> => {
  const entering = deps.opened().then(() => enter(deps.pool, group, deps.limits.idleMs))
  try {
    return await within(deps.limits.beatTimeoutMs, 'entering the group', entering)
  } catch (error) {
    // Should it enter late, it must not stand in the group as a member that reads nothing.
    entering.then(
      ({ session }) => session.end(),
      () => undefined,
    )
    throw error
  }
}

const gain = (state: State, presence: Presence, claimed: Claimed) => {
  const { topic, partition, committed } = claimed
  const abort = new AbortController()
  const { pool } = state.deps
  const owning = { group: state.group.name, member: presence.member }
  const lease: Lease = {
    topic,
    partition,
    committed,
    lost: abort.signal,
    commit: async (next) => {
      if (abort.signal.aborted) return 'lost'
      try {
        const committing = commitPlace(pool, owning, { topic, partition, next })
        const kept = await within(state.deps.limits.beatTimeoutMs, 'commit', committing)
        return kept && !abort.signal.aborted ? 'committed' : 'lost'
      } catch (cause) {
        if (abort.signal.aborted) return 'lost'
        throw new Fault('log_unavailable', `${topic}/${partition} took no commit`, {
          cause,
          retriable: true,
        })
      }
    },
  }
  const each: Held = {
    lease,
    abort,
    reader: null,
    cursor: { topic, partition, from: 0n, after: new Date(0) },
    news: true,
    isBehind: false,
    queued: null,
    handling: null,
    releasing: false,
  }
  state.held.set(placeOf(lease), each)
  const gaining = (async () => {
    try {
      const reader = await state.gained(lease)
      each.cursor = { ...each.cursor, from: reader.from }
      each.reader = reader
      state.fetching.wake()
    } catch (error) {
      // It is somebody else's by now: nothing of it is missing here.
      if (!abort.signal.aborted) state.die(error)
      else state.deps.logger?.warn({ err: error, topic, partition }, 'log.not_gained')
    }
  })()
  follow(state, gaining)
}

const lose = (state: State, each: Held) => {
  each.abort.abort()
  if (each.handling !== null) follow(state, each.handling)
  if (state.held.get(placeOf(each.lease)) === each) state.held.delete(placeOf(each.lease))
}

/** `stop` waits for it; it never rejects. */
const follow = ({ strays }: State, work: Promise<void>) => {
  strays.add(work)
  void work.then(() => strays.delete(work))
}

const loseAll = (state: State) => {
  for (const each of [...state.held.values()]) lose(state, each)
}

/** Lets the handle in hand finish, within reason, so that its work is not done twice. */
const release = async (state: State, presence: Presence, each: Held) => {
  each.releasing = true
  await Promise.race([each.handling, sleep(state.deps.limits.releaseMs)])
  lose(state, each)
  const { pool } = state.deps
  const owning = { group: state.group.name, member: presence.member }
  try {
    await freePlaces(pool, owning, [each.lease])
    await notifyGroup(pool, state.group.name)
  } catch (error) {
    // The next look finds a place that is ours without being held, and frees it.
    state.deps.logger?.warn({ err: error }, 'log_lease.kept')
  }
}

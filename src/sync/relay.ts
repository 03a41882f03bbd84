// The relay: moves outbox rows into topic `outbound`, each once and in seq order within its shard.
//
// One process at a time relays all shards with one append in flight, so the entries it has not
// checkpointed lie between its saved bounds and the end of the topic. Taking over, and after a
// rejected append, which may have been written all the same, it reads that stretch and deletes from
// the outbox what it finds there. An append of a replaced relay that lands even later repeats a seq,
// which delivery drops.
//
// What this process wrote itself it need not read back: a chunk hands its rows over once they are
// committed. Before they are appended the outbox is asked whether they are still there, all of them and
// with nothing before them in their shards; of any other shard the rows are read.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Outbound, outboundKey } from '../domain/message.ts'
import { Fault } from '../fault.ts'
import type { At } from '../log/log.ts'
import { type Handed, openHanded } from './handed.ts'
import { checkpoint, readFirst, readOutbox, takeRelay } from './relay-store.ts'
import { spansOf } from './spans.ts'
import { type SyncDeps, type Term, termLost } from './term.ts'

export type Relay = {
  /** Takes committed rows, each shard's in order; never waits. */
  hand(rows: readonly Outbound[]): void
  /** Resolves once what was handed over before is in the log; what could not be is, too. */
  forward(): Promise<void>
  /** Resolves once every row in the outbox when it was called is in the log and deleted. */
  drain(): Promise<void>
}

type State = { bounds: readonly bigint[]; appends: number; readonly handed: Handed }

/** Takes the relay over; the epoch fences everything of the term. */
export const takeOver = async (
  deps: SyncDeps,
): Promise<{ epoch: bigint; bounds: State['bounds'] }> => {
  const taken = await takeRelay(deps.pool)
  // Without bounds nothing was ever appended by this database: what the topic holds is not ours.
  const bounds = taken.bounds ?? (await ends(deps))
  return { epoch: taken.epoch, bounds }
}

export const openRelay = async (term: Term, bounds: State['bounds']): Promise<Relay> => {
  const { handedRowsMax: rowsMax, handedBytesMax: bytesMax } = term.deps.limits
  const state: State = { bounds, appends: 0, handed: openHanded({ rowsMax, bytesMax }) }
  await reconcile(term, state)
  let turn: Promise<void> = Promise.resolve()
  const inTurn = (work: (term: Term, state: State) => Promise<void>) => () => {
    const next = turn.then(() => work(term, state))
    turn = next.catch(() => undefined)
    return next
  }
  return { hand: state.handed.add, forward: inTurn(forward), drain: inTurn(drain) }
}

/** What was handed over, and all of the outbox where that could not be. */
const forward = async (term: Term, state: State): Promise<void> => {
  const whole = await sendHanded(term, state)
  if (state.handed.turnedAway() || !whole) await sendOutbox(term, state)
}

const drain = async (term: Term, state: State): Promise<void> => {
  await sendHanded(term, state)
  await sendOutbox(term, state)
}

/** False where some are left to be read from the outbox. */
const sendHanded = async (term: Term, state: State): Promise<boolean> => {
  const { pool, limits } = term.deps
  let whole = true
  for (;;) {
    const rows = state.handed.take(limits.appendRowsMax)
    if (rows.length === 0) return whole
    term.signal.throwIfAborted()
    const first = await readFirst(pool, { epoch: term.epoch, spans: spansOf(rows) })
    if (first === null) throw termLost()
    const sure = rows.filter(({ shard }) => first.has(shard))
    const sent = sure.length === 0 || (await send(term, state, sure))
    whole &&= sent && sure.length === rows.length
  }
}

const sendOutbox = async (term: Term, state: State): Promise<void> => {
  const { pool, limits } = term.deps
  for (;;) {
    term.signal.throwIfAborted()
    const handed = state.handed.count()
    const rows = await readOutbox(pool, { epoch: term.epoch, limit: limits.appendRowsMax })
    if (rows === null) throw termLost()
    if (rows.length > 0) await send(term, state, rows)
    else {
      // Committed before an outbox that was empty: none of them is in it any more.
      state.handed.take(handed)
      return
    }
  }
}

/** False where the log refused: some of them may be in the outbox still. */
const send = async (term: Term, state: State, rows: readonly Outbound[]): Promise<boolean> => {
  const { appender, codecs, limits, logger } = term.deps
  const entries = rows.map((row) => ({
    key: outboundKey(row),
    value: codecs.outbound.encode(row),
  }))
  let placed: readonly At[]
  try {
    placed = await appender.append('outbound', entries)
  } catch (error) {
    if (!(error instanceof Fault && error.retriable)) throw error
    logger.warn({ err: error, rows: rows.length }, 'append.rejected')
    await recover(term, state)
    return false
  }
  state.appends += 1
  const bounds =
    state.appends % limits.appendsPerBounds === 0
      ? await ends(term.deps)
      : advance(state.bounds, placed)
  await save(term, state, { bounds, rows })
  return true
}

const save = async (
  term: Term,
  state: State,
  done: { readonly bounds: readonly bigint[]; readonly rows: readonly Place[] },
): Promise<void> => {
  const spans = spansOf(done.rows)
  const { epoch } = term
  if (!(await checkpoint(term.deps.pool, { epoch, bounds: done.bounds, spans }))) throw termLost()
  state.bounds = done.bounds
}

/** The log is away or slow: waits longer each time, then looks what it has taken. */
const recover = async (term: Term, state: State): Promise<void> => {
  const { limits, logger } = term.deps
  for (let pause = 50; ; pause = Math.min(pause * 2, limits.appendPauseMaxMs)) {
    await sleep(pause * (0.5 + Math.random() / 2), undefined, { signal: term.signal })
    try {
      return await reconcile(term, state)
    } catch (error) {
      if (!(error instanceof Fault && error.retriable) || error.code === 'position_lost')
        throw error
      logger.warn({ err: error }, 'outbound.unread')
    }
  }
}

type Place = Pick<Outbound, 'shard' | 'seq'>

/** Reads the topic from the bounds to its end and deletes from the outbox what is there already. */
const reconcile = async (term: Term, state: State): Promise<void> => {
  const { source, codecs } = term.deps
  const until = await ends(term.deps)
  for (const [partition, end] of until.entries()) {
    const from = state.bounds[partition] ?? 0n
    if (from >= end) continue
    for await (const batch of source.read({ topic: 'outbound', partition, from, until: end })) {
      const values = batch.entries.map(({ value }) => value)
      const rows = (await codecs.outbound.decode(values)).filter(({ shard }) => shard >= 0)
      // The bounds stay behind until every partition was read: a crash in between reads again.
      if (rows.length > 0) await save(term, state, { bounds: state.bounds, rows })
    }
  }
  await save(term, state, { bounds: until, rows: [] })
}

const ends = async ({ source }: SyncDeps): Promise<readonly bigint[]> =>
  (await source.bounds('outbound')).map(({ end }) => end)

const advance = (bounds: readonly bigint[], placed: readonly At[]): readonly bigint[] => {
  const next = [...bounds]
  for (const { partition, offset } of placed) {
    const before = next[partition] ?? 0n
    if (offset >= before) next[partition] = offset + 1n
  }
  return next
}

// What the replay stage knows of itself, for whoever asks: metrics.
import type { Replay } from './store.ts'

export type ReplayMeter = {
  /** Of the process that works replays, by state; empty in the others. */
  open: ReadonlyMap<Replay['state'], number>
  /** Open ones that paused by themselves. */
  troubled: number
  /** Sent and neither delivered nor given up yet, of all that are open. */
  outstanding: number
  /** Offsets and calls of this process, since its start. */
  read: number
  sent: number
}

export const openReplayMeter = (): ReplayMeter => ({
  ...{ open: new Map(), troubled: 0, outstanding: 0 },
  ...{ read: 0, sent: 0 },
})

type Looked = {
  readonly replays: readonly Pick<Replay, 'state' | 'trouble'>[]
  readonly outstanding: number
}

export const nothingOpen: Looked = { replays: [], outstanding: 0 }

export const noteOpen = (meter: ReplayMeter, { replays, outstanding }: Looked): void => {
  const open = new Map<Replay['state'], number>()
  for (const { state } of replays) open.set(state, (open.get(state) ?? 0) + 1)
  meter.open = open
  meter.troubled = replays.filter(({ trouble }) => trouble !== null).length
  meter.outstanding = outstanding
}

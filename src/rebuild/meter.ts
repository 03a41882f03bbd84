// What the rebuild stage knows of itself, for whoever asks: metrics.
import type { RebuildEnd, RebuildState } from './store.ts'

export type RebuildMeter = {
  /** Of the rebuild this process works on; null: on none. */
  state: RebuildState | null
  /** Calls between it and the live projector, when it looked last. */
  left: number
  /** How long the live projector stood still for the last swap of this process. */
  standstillMs: number | null
  /** Tries to swap that waited for something. */
  swapsPutOff: number
  /** Of this process, since its start. */
  readonly ended: Map<RebuildEnd, number>
}

export const openRebuildMeter = (): RebuildMeter => ({
  state: null,
  left: 0,
  standstillMs: null,
  swapsPutOff: 0,
  // A series that begins at 1 has not increased, for who watches it.
  ended: new Map([
    ['swapped', 0],
    ['verified', 0],
    ['failed', 0],
  ]),
})

export const countEnd = ({ ended }: RebuildMeter, end: RebuildEnd): void => {
  ended.set(end, (ended.get(end) ?? 0) + 1)
}

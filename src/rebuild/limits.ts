// The limits of rebuilds, each with its unit.
import { type ProjectLimits, projectLimits } from '../project/limits.ts'

export const rebuildLimits = {
  project: projectLimits as ProjectLimits,
  /** Of users folded in memory before they are written, in bytes. */
  writeBackBytesMax: 64 * 1_048_576,
  connectionsMax: 4,
  /** Calls of one partition handed on at once, and decoded ahead of it. */
  runCallsMax: 2_000,
  /** How far calls may be folded before others that were received earlier, in milliseconds. */
  slackMs: 1_000,
  /** Decisions of one partition held in memory. */
  decisionsMax: 1_000,
  /** The fold rests while the live projector has more calls than this before it. */
  liveLagMax: 10_000,
  /** Between two looks at it, in milliseconds. */
  liveLookMs: 500,
  /** So near to live, in calls, the states are compared and swapped. */
  nearCallsMax: 20_000,
  /** The swap is given up, and tried again later, when the live line stood for this long, in milliseconds. */
  stillMsMax: 5_000,
  /** What the swap waits for a lock, in milliseconds. */
  lockMsMax: 2_000,
  /** Between two tries to swap, in milliseconds. */
  swapRetryMs: 1_000,
  /** Identities compared at once. */
  comparePageMax: 2_000,
  /** Differing users told of. */
  differencesMax: 20,
  /** Users in one transaction of the sweep before the swap. */
  sweepUsersMax: 1_000,
  /** Between two looks for a rebuild to work on, in milliseconds. */
  pollMs: 1_000,
}

export type RebuildLimits = typeof rebuildLimits

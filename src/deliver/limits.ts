// Every bound of the deliver stage, by name.

export const deliverLimits = {
  /** Values fetched from the log and not yet handled, per membership. */
  fetchBytesMax: 16_777_216,
  /** Offsets between a partition's lowest unsettled and highest seen one: its completion bitmap. */
  spanMax: 24_000,
  /** Bytes of a position row for destinations done under unsettled offsets. */
  doneBytesMax: 65_536,
  /** Bodies waiting in all lanes. */
  bytesMax: 67_108_864,
  /** Deliveries waiting in all lanes, and in one destination's: reading further ahead only costs memory. */
  waitingMax: 8_192,
  laneMax: 1_000,
  /** How long a lane may be full before its overflow is parked. */
  fullMs: 100,
  /** Rounds in flight of one destination, and in all. */
  roundsPerLaneMax: 32,
  roundsMax: 2_048,
  /** Share of a lane's rounds that retries, and imports, may take while live messages wait. */
  retryShare: 0.4,
  importShare: 0.5,
  /** A lane that delivered within this time and has nothing to do is not held back by a full one. */
  hungryMs: 10_000,
  /** Import calls taken on before looking again whether live ones wait, and the longest such wait. */
  importSlice: 100,
  importWaitMs: 250,
  /** Work of one desk transaction; what may wait for it before intake is held back. */
  deskBatchMax: 200,
  deskMax: 10_000,
  deskBytesMax: 33_554_432,
  /** Pause after a failed desk transaction or position write. */
  pauseMs: 250,
  claimEveryMs: 250,
  /** Parked rows taken into one lane at once, and of one claim. */
  claimPerLaneMax: 100,
  claimMax: 500,
  leaseMs: 30_000,
  /** A claimed row whose lease ends sooner than this is not tried: longer than a round can take. */
  leaseMarginMs: 12_000,
  /** Parked chains remembered one by one; above it their destinations' messages are all parked. */
  chainsMax: 200_000,
  positionEveryMs: 250,
  attemptBufferMax: 20_000,
  attemptEveryMs: 500,
  attemptHeadMax: 512,
  attemptKeepMs: 604_800_000,
  duplicateBytesMax: 8_388_608,
  /** Intake gives the event loop back after this long. */
  yieldMs: 5,
  /** How long `stop` waits for rounds in flight. */
  drainMs: 10_000,
} as const

export type DeliverLimits = { readonly [K in keyof typeof deliverLimits]: number }

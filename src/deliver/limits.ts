// Every bound of the deliver stage, by name.

export const deliverLimits = {
  /** Values fetched from the log and not yet handled, per membership. */
  fetchBytesMax: 33_554_432,
  /** Offsets between a partition's lowest unsettled and highest seen one: its completion bitmap. */
  spanMax: 24_000,
  /** Bytes of a position row for destinations done under unsettled offsets. */
  doneBytesMax: 65_536,
  /** Bodies waiting in all lanes. */
  bytesMax: 67_108_864,
  /**
   * Deliveries waiting in all lanes, and in one destination's: reading further ahead only costs memory, and
   * what waits longer than the young generation lasts is copied twice before it is sent.
   */
  waitingMax: 2_048,
  laneMax: 1_000,
  /** A lane that has fewer, and may start one, is not what fills them all. */
  laneFew: 16,
  /** Of a lane, from replays. */
  replayLaneMax: 200,
  /** How long a lane may be full before its overflow is parked. */
  fullMs: 100,
  /** A full lane that would take longer than this for what it has is slow: its overflow is parked too. */
  slowMs: 2_000,
  /** Requests at a time to one URL, where its operator set nothing. */
  urlConcurrencyMax: 20,
  /** Rounds in flight of one destination, whatever its URLs bear, and in all. */
  roundsPerLaneMax: 512,
  roundsMax: 2_048,
  /** Shares of all rounds kept for first tries, and for retries: neither can starve the other. */
  firstShareMin: 0.6,
  retryShareMin: 0.1,
  /** Share of a lane's rounds that retries, and imports, may take while live messages wait. */
  retryShare: 0.4,
  importShare: 0.5,
  /** Live messages that an import or a replay lets pass, where they never cease. */
  passMax: 19,
  /** A lane that delivered within this time and has nothing to do is not held back by a full one. */
  hungryMs: 10_000,
  /** Import calls taken on before looking again whether live ones wait, and the longest such wait. */
  importSlice: 100,
  importWaitMs: 250,
  /** Work of one desk transaction, by number and by its bodies; what may wait for it before intake is held back. */
  deskBatchMax: 200,
  deskBatchBytesMax: 4_194_304,
  deskMax: 10_000,
  deskBytesMax: 33_554_432,
  /** From one desk transaction to the next while there is nothing but a few to park: what comes meanwhile goes along. */
  deskEveryMs: 50,
  /** Pause after a failed desk transaction or position write. */
  pauseMs: 250,
  claimEveryMs: 250,
  /** A lane that is shut is asked for its last tries this often. */
  shutEveryMs: 2_000,
  /** States of URLs are written and read this often; lanes waiting for their rate are looked at this often. */
  urlEveryMs: 1_000,
  paceEveryMs: 20,
  /** What operators are told of the URLs held back. */
  reportEveryMs: 2_000,
  /** Parked rows taken into one lane at once, and of one claim. */
  claimPerLaneMax: 100,
  claimMax: 500,
  /** Rows of one lane in a claim that many lanes share; more lanes than have room for that take turns. */
  claimShareMin: 5,
  leaseMs: 30_000,
  /** A claimed row whose lease ends sooner than this is not tried: longer than a round can take. */
  leaseMarginMs: 12_000,
  /** So much waiting in one chain, or its first for so long, suspends its order for so long. */
  chainMax: 200,
  headMaxMs: 900_000,
  suspendMs: 600_000,
  /** Parked chains remembered one by one; above it their destinations' messages are all parked. */
  chainsMax: 200_000,
  /** Of them read at a time when a partition is gained. */
  chainsPage: 2_000,
  /** How often recoveries are looked for, and how many of them, and rows of one, a transaction takes on. */
  recoverEveryMs: 500,
  recoveriesMax: 20,
  recoverMax: 200,
  /** A destination with more than this parked gets no dead messages back yet. */
  recoverAheadMax: 2_000,
  /** Of a recovery that starts by itself. */
  recoverPerSecond: 100,
  /** Parked for one destination by all processes: above either bodies stay in the log alone. */
  parkedRowsMax: 5_000_000,
  parkedBytesMax: 2_147_483_648,
  /** Above this nothing more is parked for it: partitions with messages for it wait. */
  parkedRowsHardMax: 20_000_000,
  quotaEveryMs: 2_000,
  /** Tables are made and dropped, and the dead forgotten. */
  houseEveryMs: 60_000,
  /** The window of four hours, and one to spare: older bodies go when nothing refers to them. */
  bodyKeepMs: 18_000_000,
  deadKeepMs: 2_592_000_000,
  positionEveryMs: 250,
  /** The log is told a partition's watermark no more often. */
  tellEveryMs: 2_000,
  /** Figures over all processes. */
  figuresEveryMs: 60_000,
  attemptBufferMax: 20_000,
  attemptCharactersMax: 16_777_216,
  attemptEveryMs: 500,
  attemptHeadMax: 512,
  attemptKeepMs: 604_800_000,
  duplicateBytesMax: 8_388_608,
  /** Calls whose duplicates are recorded together: what a crash repeats besides what is in flight. */
  intakeSlice: 1_000,
  /** Intake of a partition gives the event loop back after this long. */
  yieldMs: 2,
  /** How long `stop` waits for rounds in flight. */
  drainMs: 10_000,
} as const

export type DeliverLimits = { readonly [K in keyof typeof deliverLimits]: number }

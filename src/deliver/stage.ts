// What the stage works on: partitions held, lanes by destination, chains, and single deliveries.
import type { EventLoopUtilization } from 'node:perf_hooks'
import type { Logger } from 'pino'
import type { Live } from '../domain/configuration.ts'
import type { Message, Outbound } from '../domain/message.ts'
import type { Pipeline } from '../domain/pipeline.ts'
import type { Suppressions } from '../domain/suppression.ts'
import type { Open, Tracker } from '../domain/tracker.ts'
import type { Duplicates } from '../duplicate/duplicates.ts'
import type { Post, Probe } from '../http/post.ts'
import type { Codec, Lease, Source, Topic } from '../log/log.ts'
import type { Pool } from '../postgres/sql.ts'
import type { Clock } from '../running.ts'
import type { Alerts } from './alerts.ts'
import type { AttemptLog } from './attempts.ts'
import type { Breaths } from './breath.ts'
import type { Desk } from './desk.ts'
import type { DeliverLimits } from './limits.ts'
import type { Meter } from './meter.ts'
import type { Pairs } from './pairs.ts'
import type { Queue } from './queue.ts'
import type { Quota } from './quota.ts'
import type { Replays } from './replays.ts'
import type { Saver } from './saver.ts'
import type { Signal } from './signal.ts'
import type { UrlEvent } from './url-change.ts'
import type { Target, Urls } from './urls.ts'

export type DeliverDeps = {
  readonly source: Source
  readonly codecs: { readonly call: Codec<Message>; readonly outbound: Codec<Outbound> }
  readonly pool: Pool
  readonly live: Live
  readonly clock: Clock
  readonly post: Post
  /** Looks whether a certificate that was refused is good now; absent: only operators know. */
  readonly probe?: Probe
  readonly logger: Logger
  readonly limits?: Partial<DeliverLimits>
  /** Uniform in [0, 1): the jitter of retries. */
  readonly random?: () => number
  /** What is counted for metrics; absent: for nobody. */
  readonly meter?: Meter
  /** Tells operators; absent: none asked for it. */
  readonly alerts?: Alerts
  /** Hears of every change of a URL's state or breaker; must not throw. */
  readonly onUrlChange?: (event: UrlEvent) => void
  /** Hears whenever the order of one visitor's messages to a destination is given up for a while. */
  readonly onOrderSuspended?: (destinationId: number) => void
  /** Where calls that a destination does not get are counted; absent: nowhere. */
  readonly pipeline?: Pipeline
  /** Whose messages are dropped; nobody's when absent. */
  readonly suppressions?: Suppressions
}

/** The outcomes a (message, destination) pair can have, counted since ever in each position, in its order. */
export const outcomes = [
  'delivered',
  'parked',
  'dead',
  'filtered',
  'duplicate',
  'suppressed',
  'cancelled',
] as const
export type Counters = Record<(typeof outcomes)[number], bigint>

/** The last relay coordinates seen of a shard, and the offset that set them. */
export type Mark = { readonly seq: number; readonly offset: number }

export type Partition = {
  readonly topic: Topic
  readonly partition: number
  readonly epoch: bigint
  /** The last epoch that this process took, and nobody else before it, with the partition not given to anybody yet. */
  regained: bigint
  readonly lease: Lease
  readonly tracker: Tracker
  /** By destination, then by chain hash. */
  readonly chains: Map<number, Map<string, Chain>>
  /** Offsets at or above the position that are parked or dead already, with their destinations. */
  readonly already: Map<number, Set<number>>
  /** The highest of them when it was gained; below it rows are parked before others that are there already. */
  readonly alreadyTo: number
  readonly marks: Map<number, Mark>
  /** How many destinations do not get the call at an offset, while others of it are not settled. */
  readonly withheld: Map<number, number>
  readonly counters: Counters
  readonly pairs: Pairs
  /** Why nothing more is taken from it; `null`: it is. */
  paused: 'postgres' | 'quota' | 'room' | null
  /** Only calls are sent twice by clients; `outbound` has relay coordinates instead. */
  readonly duplicates: Duplicates | null
  /** Rows parked, by destination: in Postgres or on their way there. */
  readonly parked: Map<number, number>
  /** Destinations with too many parked chains to tell apart: everything of theirs is parked. */
  readonly spilled: Set<number>
  /** Duplicates of what was read have been recorded once: from then on that is as fast as Postgres commits. */
  isRecording: boolean
  /** The tracker's version in the last position written, its watermark, and what the log was told. */
  written: number
  watermark: bigint
  committed: bigint | null
  telling: Promise<void> | null
  /** Real time. */
  toldAt: number
  lost: boolean
  rounds: number
  /** Verdicts on duplicates that wait to be saved. */
  saving: number
}

/** What is read besides live messages and must not hold them up. */
export const isBeside = ({ topic }: Pick<Partition, 'topic'>): boolean =>
  topic === 'calls.import' || topic === 'outbound.replay'

/** Whether it holds messages of the service's own, made for one destination each. */
export const isMade = ({ topic }: Pick<Partition, 'topic'>): boolean =>
  topic === 'outbound' || topic === 'outbound.replay'

/** Everything for one destination; lanes never wait for each other. */
export type Lane = {
  readonly destinationId: number
  readonly live: Queue<Chain>
  readonly retry: Queue<Chain>
  /** What stands behind live messages: imports and replays. */
  readonly imports: Queue<Chain>
  /** Live messages that have gone before the first of those. */
  passed: number
  /** Whose window is about to close: they go even where nothing else may. */
  readonly last: Queue<Chain>
  /** The destination and its URLs as this lane knew them last. */
  target: Target | null
  waiting: number
  /** Of it, from replays; since when, in real time, there has been no room for more of them. */
  replaying: number
  replayFullSince: number | null
  bytes: number
  rounds: number
  retries: number
  importing: number
  /** Claimed rows in hand, and rows parked in the partitions held. */
  claimed: number
  parked: number
  /** Some of them may be held; the last claim left some behind; real time of the next claim while shut. */
  mayHold: boolean
  more: boolean
  askAt: number
  inTurn: boolean
  deliveredAt: number
  /** Rounds begun since ever. */
  begun: number
  /** While it has no room, until half of it is free again. */
  full: Full | null
}

export type Full = {
  /** Real time. */
  readonly since: number
  /** When its pace was looked at last, what had begun and how busy this process was by then, and what that came to. */
  lookedAt: number
  begun: number
  loop: EventLoopUtilization
  isSlow: boolean
}

/** One visitor's messages to one destination: sent one after the other. */
export type Chain = {
  readonly partition: Partition
  readonly lane: Lane
  readonly hash: string
  /** Its name among the chains of its destination: the hash, or of a single message its own. */
  readonly key: string
  /** A single message whose order is suspended: the chain it would have waited in. */
  readonly of: Chain | null
  /** Not remembered: Postgres alone keeps its order. */
  readonly stray: boolean
  readonly waiting: Delivery[]
  busy: boolean
  queued: boolean
  /** A message of it waits for room: the chain must not be forgotten meanwhile. */
  pinned: boolean
  /** Rows of this chain in Postgres or on their way there, and those on their way. */
  parked: number
  parking: number
  /** No row of it has a higher offset. */
  parkedTo: number
  /** Ascends with every park, so that a claim made before one can be told. */
  parks: number
  /** Since when the first parked row has been the first, and until when order does not hold. */
  headSince: number
  suspendedUntil: number
}

/** A claimed parked row. */
export type Row = {
  readonly id: bigint
  readonly attempts: number
  readonly firstTryAt: number | null
  readonly finalUrls: readonly string[]
  readonly leaseUntil: number
  readonly parkedAt: number
  /** Its window was about to close when it was claimed. */
  readonly isLast: boolean
  /** Whether its body is stored, so that a retry need not store it. */
  readonly isKept: boolean
  /** Sent again by this recovery. */
  readonly recoveryId: number | null
}

export type Delivery = {
  readonly chain: Chain
  /** `null` for a claimed row: its offset was settled when it was parked. */
  readonly open: Open | null
  readonly row: Row | null
  readonly offset: number
  readonly messageId: string
  readonly type: string
  /** What is stored, signed and sent; one buffer for all destinations that get the same of a message. */
  readonly body: Buffer
  /** Epoch ms: when the call was received; of a claimed row, when it was parked. */
  readonly receivedAt: number
  /** The version of the suppressions that let it through when it was taken from the log. */
  readonly letThroughBy: bigint
}

export type Stage = {
  readonly deps: DeliverDeps
  readonly limits: DeliverLimits
  readonly meter: Meter
  /** Names this process in leases. */
  readonly owner: string
  readonly partitions: Map<string, Partition>
  readonly lanes: Map<number, Lane>
  readonly turn: Queue<Lane>
  /** Lanes that wait until their rate has room, or until their kind of round has. */
  readonly paced: Set<Lane>
  readonly starved: { readonly firsts: Set<Lane>; readonly retries: Set<Lane> }
  readonly urls: Urls
  readonly desk: Desk
  readonly saver: Saver
  readonly breaths: Breaths
  readonly attempts: AttemptLog
  readonly quota: Quota
  readonly replays: Replays
  /** Spans of time whose tables are known to exist: hours of bodies, days of attempts. */
  readonly hours: Set<number>
  readonly days: Set<number>
  /** Rings when lanes or the desk have room again. */
  readonly room: Signal
  readonly random: () => number
  rounds: number
  /** Of them, retries. */
  retries: number
  waiting: number
  waitingLive: number
  bytes: number
  /** Remembered chains with parked rows. */
  parkedChains: number
  stopping: boolean
  /** Real time after which a stopping stage no longer waits for rounds or for Postgres. */
  giveUpAt: number
  /** Resolves when a stopping stage has drained. */
  readonly drained: Promise<void>
  /** The partition's position has another owner. */
  readonly fenced: (lease: Lease) => void
  /** Ends the stage: something failed that no retry mends. */
  readonly fail: (error: unknown) => void
}

export const count = (counts: Map<number, number>, key: number, by: number): void => {
  const sum = (counts.get(key) ?? 0) + by
  if (sum > 0) counts.set(key, sum)
  else counts.delete(key)
}

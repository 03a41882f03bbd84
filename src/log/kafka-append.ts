// The appender on Kafka: group commit with one request in flight, and a fresh producer after any failure.
// kafkajs reuses a sequence number after a failed send, and the broker answers "duplicate, success"
// for a batch it never wrote: a producer that failed once must not send again (docs/adr/0006).
import { setTimeout as sleep } from 'node:timers/promises'
import { partitionOf } from '../domain/partition.ts'
import { Fault } from '../fault.ts'
import { type KafkaConnection, topicName, unavailable } from './kafka-client.ts'
import { type DisposableProducer, openProducer, type Sending } from './kafka-producer.ts'
import { type Appender, type At, type Entry, placeOf, type Topic } from './log.ts'
import { within } from './within.ts'

export type AppendLimits = {
  /** Bytes of keys and values appended and not yet answered. */
  readonly waitingBytesMax: number
  /** Of one request over all partitions. */
  readonly sendBytesMax: number
  /** kafkajs groups messages in time quadratic to their number. */
  readonly sendEntriesMax: number
  /** A request holds one record batch for each partition, and a broker takes 1 MiB by default. */
  readonly batchBytesMax: number
  readonly entryBytesMax: number
  /** When an append that was not answered is rejected. */
  readonly appendMs: number
  /** When a request that was not answered is given up, and its producer with it. */
  readonly sendMs: number
}

export const appendLimits: AppendLimits = {
  waitingBytesMax: 67_108_864,
  sendBytesMax: 4_194_304,
  sendEntriesMax: 2_000,
  batchBytesMax: 900_000,
  entryBytesMax: 1_040_000,
  appendMs: 4_800,
  sendMs: 4_000,
}

type Options = KafkaConnection & {
  readonly partitions: number
  readonly limits?: Partial<AppendLimits>
}

type Waiting = {
  readonly messages: readonly Sending[]
  readonly bytes: number
  readonly deadline: number
  readonly places: At[]
  /** Messages already given to a request. */
  given: number
  settled: boolean
  resolve(places: readonly At[]): void
  reject(error: unknown): void
}

export const kafkaAppender = (options: Options): Appender => {
  const limits = { ...appendLimits, ...options.limits }
  const line = waitingLine()
  let producer: DisposableProducer | null = null
  let closed = false
  let pumping: Promise<void> | null = null

  const pump = async () => {
    for (let failures = 0; line.size() > 0; ) {
      try {
        producer ??= await openProducer(options)
        const part = gather(line, limits)
        if (part.length > 0) await sendPart({ producer, part, line, sendMs: limits.sendMs })
        failures = 0
      } catch (error) {
        failures++
        producer?.discard()
        producer = null
        options.logger.warn({ error, failures, waiting: line.size() }, 'producer.discarded')
        await sleep(Math.min(50 * 2 ** failures, 500))
      }
    }
    // In the same turn as the look at the line: an append that comes later starts the pump again.
    pumping = null
  }
  const sweeper = setInterval(() => line.expire(performance.now()), 100)
  sweeper.unref()

  return {
    append: async (topic, entries) => {
      if (closed) throw new Fault('log_closed', 'the appender was closed')
      if (entries.length === 0) return []
      const messages = entries.map((entry) => messageOf(options, topic, entry))
      checkSizes(messages, limits, line.bytes())
      const places = line.join(messages, performance.now() + limits.appendMs)
      pumping ??= pump()
      return places
    },
    close: async () => {
      closed = true
      while (pumping !== null) await pumping
      clearInterval(sweeper)
      producer?.discard()
      producer = null
    },
  }
}

const messageOf = (options: Options, topic: Topic, { key, value }: Entry): Sending => ({
  topic: topicName(options, topic),
  partition: partitionOf(key, options.partitions),
  key,
  value,
})

const sizeOf = ({ key, value }: Sending) => Buffer.byteLength(key) + value.byteLength

const checkSizes = (messages: readonly Sending[], limits: AppendLimits, waiting: number) => {
  let bytes = waiting
  for (const message of messages) {
    const size = sizeOf(message)
    bytes += size
    if (size > limits.entryBytesMax)
      throw new Fault('log_unavailable', `an entry of ${size} bytes is larger than the log takes`)
  }
  if (bytes > limits.waitingBytesMax)
    throw new Fault('log_unavailable', 'too much is waiting to be appended', { retriable: true })
}

type Line = ReturnType<typeof waitingLine>

/** Appends not yet answered, oldest first. */
const waitingLine = () => {
  const waiting = new Set<Waiting>()
  let bytes = 0
  const settle = (one: Waiting) => {
    if (one.settled) return false
    one.settled = true
    waiting.delete(one)
    bytes -= one.bytes
    return true
  }
  return {
    size: () => waiting.size,
    bytes: () => bytes,
    all: (): Iterable<Waiting> => waiting,
    join: (messages: readonly Sending[], deadline: number) =>
      new Promise<readonly At[]>((resolve, reject) => {
        const size = messages.reduce((sum, message) => sum + sizeOf(message), 0)
        const state = { places: [], given: 0, settled: false, resolve, reject }
        waiting.add({ messages, bytes: size, deadline, ...state })
        bytes += size
      }),
    placed: (one: Waiting, at: At) => {
      one.places.push(at)
      if (one.places.length === one.messages.length && settle(one)) one.resolve(one.places)
    },
    fail: (one: Waiting, error: unknown) => {
      if (settle(one)) one.reject(error)
    },
    expire: (now: number) => {
      for (const one of waiting) {
        if (one.deadline > now) return
        if (settle(one)) one.reject(unavailable('not appended in time', 'Kafka does not answer'))
      }
    },
  }
}

type Given = { readonly message: Sending; readonly waiting: Waiting }

/** The oldest waiting messages, in order, as many as one request takes: always at least one. */
const gather = (line: Line, limits: AppendLimits): readonly Given[] => {
  const part: Given[] = []
  const batches = new Map<string, number>()
  let bytes = 0
  for (const waiting of line.all()) {
    while (waiting.given < waiting.messages.length) {
      const message = waiting.messages[waiting.given] as Sending
      const size = sizeOf(message)
      const place = placeOf(message)
      const batch = batches.get(place) ?? 0
      const full = part.length >= limits.sendEntriesMax || bytes + size > limits.sendBytesMax
      if (part.length > 0 && (full || (batch > 0 && batch + size > limits.batchBytesMax)))
        return part
      part.push({ message, waiting })
      batches.set(place, batch + size)
      bytes += size
      waiting.given++
    }
  }
  return part
}

type SendingPart = {
  readonly producer: DisposableProducer
  readonly part: readonly Given[]
  readonly line: Line
  readonly sendMs: number
}

const sendPart = async ({ producer, part, line, sendMs }: SendingPart) => {
  try {
    const sending = producer.send(part.map(({ message }) => message))
    const next = new Map(await within(sendMs, 'the request to Kafka', sending))
    for (const { message, waiting } of part) {
      const place = placeOf(message)
      const offset = next.get(place) as bigint
      next.set(place, offset + 1n)
      line.placed(waiting, { partition: message.partition, offset })
    }
  } catch (error) {
    // Every append that has any part in this request fails whole: what was written of it is unknown.
    const fault = error instanceof Fault ? error : unavailable('Kafka took no append', error)
    for (const { waiting } of part) line.fail(waiting, fault)
    throw error
  }
}

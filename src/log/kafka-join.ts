// Following topics in a Kafka group: kafkajs's consumer, made to keep the promises of the log port.
// Each rule in these files answers one of its traps, and each trap has a test (docs/adr/0006).
import { setTimeout as sleep } from 'node:timers/promises'
import type { Consumer, EachBatchPayload } from 'kafkajs'
import { type Joining, openAssignment } from './kafka-assignment.ts'
import { killableSockets, topicName, unavailable } from './kafka-client.ts'
import { gatherCommits } from './kafka-commit.ts'
import { fetchedOf, flowOf, openCommitting, openConsumer, runConsumer } from './kafka-consumer.ts'
import { watchSession } from './kafka-session.ts'
import type { Membership } from './log.ts'

/** How long the goodbye to the group may take; the group takes a silent member's partitions anyway. */
const goodbyeMs = 5_000

export const joinGroup = (joining: Joining): Membership => {
  const { group, timing, connection } = joining
  const sockets = killableSockets()
  const ended = Promise.withResolvers<void>()
  let ending: Promise<void> | null = null
  const consumer = openConsumer({
    ...joining,
    socketFactory: sockets.make,
    stopping: () => ending !== null,
  })
  const end = (finish: () => void) => {
    ending ??= (async () => {
      session.close()
      assignment.lose()
      await Promise.race([goodbye(consumer), sleep(goodbyeMs)])
      sockets.kill()
      finish()
    })()
    return ending
  }
  const die = (error: unknown) => void end(() => ended.reject(error))
  const committing = openCommitting(consumer, connection)
  const commits = gatherCommits(committing.send)
  const assignment = openAssignment({
    ...flowOf(consumer, connection),
    joining,
    die,
    commit: commits.commit,
  })
  const session = watchSession(consumer, {
    sessionMs: timing.sessionMs,
    lost: assignment.lose,
    gained: assignment.gain,
  })
  consumer.on('consumer.crash', ({ payload }) => {
    if (!payload.restart) die(unavailable('the Kafka consumer ended', payload.error))
  })
  // A batch of control records alone reaches no handler; its offsets are a hole.
  consumer.on('consumer.start_batch_process', ({ payload }) => {
    if (payload.batchSize > 0 || payload.firstOffset === null) return
    assignment.slot(payload)?.skip(BigInt(payload.firstOffset), BigInt(payload.lastOffset) + 1n)
  })
  const eachBatch = async (payload: EachBatchPayload) => {
    committing.through(payload)
    if (!payload.isStale()) assignment.slot(payload.batch)?.offer(fetchedOf(payload))
  }
  const topics = group.topics.map((topic) => topicName(connection, topic))
  runConsumer(consumer, { topics, eachBatch }).catch((error: unknown) =>
    die(unavailable('the Kafka consumer did not start', error)),
  )
  return {
    done: ended.promise,
    stop: async () => {
      await assignment.drain()
      await commits.settled()
      await end(ended.resolve)
    },
  }
}

const goodbye = async (consumer: Consumer) => {
  try {
    await consumer.disconnect()
  } catch {
    // The group is unreachable: it will miss this member.
  }
}

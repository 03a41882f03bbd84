// The log on Kafka: what a process opens of it.
import { type KafkaConnection, openAdmin } from './kafka-client.ts'
import { type GroupTiming, groupTiming } from './kafka-consumer.ts'
import { joinGroup } from './kafka-join.ts'
import { openFetching } from './kafka-read.ts'
import { boundsOf, offsetsAtOf } from './kafka-topics.ts'
import type { Membership, Source } from './log.ts'

export { type AppendLimits, appendLimits, kafkaAppender } from './kafka-append.ts'
export type { KafkaConnection } from './kafka-client.ts'
export { ensureTopics } from './kafka-topics.ts'

type Options = KafkaConnection & { readonly timing?: GroupTiming }

export const kafkaSource = (options: Options): Source => {
  const admin = openAdmin(options)
  const fetching = openFetching(options, admin)
  const memberships = new Set<Membership>()
  return {
    join: (group, gained) => {
      const timing = options.timing ?? groupTiming
      const membership = joinGroup({ connection: options, admin, group, gained, timing })
      memberships.add(membership)
      return membership
    },
    read: fetching.read,
    bounds: (topic) => boundsOf(admin, options, topic),
    offsetsAt: (topic, at) => offsetsAtOf(admin, options, { topic, at }),
    close: async () => {
      await Promise.all([...memberships].map((membership) => membership.stop()))
      await fetching.close()
      await admin.close()
    },
  }
}

// What the RudderStack SDKs load before they send: a source that is on, and no destination to load code for.
import type { Source } from '../../domain/configuration.ts'
import { type Answer, jsonAnswer } from './answer.ts'

const off = { enabled: false } as const

/**
 * Their own error and metrics reports stay off. Without `dataplanes` the SDK sends to the URL its page gave
 * it. A disabled source looks like any other, as it does to a call.
 */
export const answerSourceConfig = ({ id, workspaceId, name, writeKey }: Source): Answer =>
  jsonAnswer(
    {
      source: {
        id: String(id),
        name,
        writeKey,
        workspaceId: String(workspaceId),
        enabled: true,
        transient: false,
        deleted: false,
        config: { statsCollection: { errors: off, metrics: off } },
        liveEventsConfig: { eventUpload: false, eventUploadTS: 0 },
        connections: [],
        destinations: [],
      },
    },
    { 'cache-control': 'no-store', vary: 'Origin' },
  )

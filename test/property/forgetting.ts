// Deletes users of a line, as its eraser does: suppressed first, then ordered in the log, then swept.
import { requestDeletion } from '../../src/erase/ask.ts'
import { erasePass } from '../../src/erase/erase.ts'
import { eraseLimits } from '../../src/erase/limits.ts'
import { openSuppressions } from '../../src/erase/suppressions.ts'
import type { Rig } from '../project/rig.ts'
import type { Call } from '../support/language.ts'

export type Forgotten = { readonly kind: 'user' | 'anonymous'; readonly value: string }

export const openForgetting = async (rig: Rig) => {
  const { pool, clock } = rig
  await pool.query('truncate deletion_request, suppression, parked_erasure cascade')
  const suppressions = await openSuppressions({ sql: pool, onError: () => undefined })
  const deps = { ...rig.deps, appender: rig.log.appender(), limits: eraseLimits }
  return {
    suppressions,
    /** Resolves when nothing of the profile is left in the state, with what the log's readers go by. */
    forget: async (subject: Forgotten): Promise<Call> => {
      const asked = { workspaceId: 1, kind: 'delete_only', createdAt: clock() } as const
      const made = await pool.transaction((tx) =>
        requestDeletion(tx, { ...asked, ids: [subject], idempotencyKey: null }),
      )
      if (!('id' in made)) throw new Error(made.outcome)
      for (;;) {
        // No order may be in the log before every process knows of the suppressions.
        await suppressions.renew()
        await erasePass(deps)
        const { rows } = await pool.query<{ step: string }>(
          'select step from deletion_request where id = $1',
          [made.id],
        )
        if (rows[0]?.step === 'waiting') break
        await rig.caughtUp()
      }
      await suppressions.renew()
      return { ...deletion(subject, rig.now()), messageId: `deletion ${made.id}` }
    },
    close: suppressions.close,
  }
}

const deletion = ({ kind, value }: Forgotten, at: number): Call => ({
  type: 'delete',
  messageId: '',
  userId: kind === 'user' ? value : null,
  anonymousId: kind === 'anonymous' ? value : null,
  previousId: null,
  event: null,
  properties: {},
  traits: {},
  timestamp: at,
  receivedAt: at,
})

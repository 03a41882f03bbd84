// What delivery keeps in Postgres, and how much of it: the settings, and the limits they are.
import { type Static, Type } from 'typebox'
import { integer, number, setting } from './setting.ts'

export const keepingSettings = {
  /** Of one destination, in all processes together. */
  parkedRowsMax: setting(
    integer(1_000, 1_000_000_000, 5_000_000),
    number('MILLRACE_PARKED_ROWS_MAX', 'a number of messages, 1000 to 1000000000'),
  ),
  parkedBytesMax: setting(
    integer(1_048_576, 1_099_511_627_776, 2_147_483_648),
    number('MILLRACE_PARKED_BYTES_MAX', 'a number of bytes, 1048576 to 1099511627776'),
  ),
  parkedRowsHardMax: setting(
    integer(1_000, 1_000_000_000, 20_000_000),
    number('MILLRACE_PARKED_ROWS_HARD_MAX', 'a number of messages, 1000 to 1000000000'),
  ),
  attemptHeadMax: setting(
    integer(0, 8_192, 512),
    number('MILLRACE_ATTEMPT_HEAD_MAX', 'a number of characters, 0 to 8192'),
  ),
  attemptDays: setting(
    integer(1, 3_650, 7),
    number('MILLRACE_ATTEMPT_DAYS', 'a number of days, 1 to 3650'),
  ),
  deadDays: setting(
    integer(1, 3_650, 30),
    number('MILLRACE_DEAD_DAYS', 'a number of days, 1 to 3650'),
  ),
}

const schema = Type.Object(keepingSettings)

type Keeping = Readonly<Static<typeof schema>>

const dayMs = 86_400_000

/** What the deliver stage keeps in Postgres, and for how long. */
export const keepingOf = (config: Keeping) => ({
  parkedRowsMax: config.parkedRowsMax,
  parkedBytesMax: config.parkedBytesMax,
  parkedRowsHardMax: config.parkedRowsHardMax,
  attemptHeadMax: config.attemptHeadMax,
  attemptKeepMs: config.attemptDays * dayMs,
  deadKeepMs: config.deadDays * dayMs,
})

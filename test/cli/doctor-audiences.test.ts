// The doctor, of audiences: somebody has to sync them.
import { describe, expect, test } from 'vitest'
import { checkAudiences } from '../../src/cli/doctor-audiences.ts'
import { cloneDatabase } from '../support/database.ts'

describe('the doctor, of audiences', async () => {
  const { pool } = await cloneDatabase()
  const now = new Date('2026-05-01T12:00:00Z')
  const secondsAgo = (seconds: number) => new Date(now.getTime() - seconds * 1_000)
  const beat = (roles: readonly string[], at: Date) =>
    pool.query(
      `insert into process (id, host, pid, version, roles, configuration_version, started_at, beat_at)
       select gen_random_uuid(), 'here', 42, '1', $1, version, $2, $2 from configuration_version`,
      [roles, at],
    )

  test('without audiences nobody has to', async () => {
    expect(await checkAudiences(pool, now)).toEqual({ state: 'ok', message: 'there are none' })
  })

  test('where no living process has the role sync it fails, and says what waits', async () => {
    await pool.query(
      `with shop as (insert into workspace (name) values ('shop') returning id)
       insert into audience (workspace_id, name, key, condition, sync_every_ms)
       select id, 'Buyers', 'buyers', '{}', 9000000 from shop`,
    )
    await pool.query('insert into membership_change values (1, 1, 0), (1, 1, 0)')
    await beat(['collect', 'project'], secondsAgo(1))
    await beat(['sync'], secondsAgo(60))
    expect(await checkAudiences(pool, now)).toEqual({
      state: 'fail',
      message:
        '1 audiences and computed traits, and no living process has the role sync: destinations are told nothing, and 2 changes of sizes wait; start one with --roles sync',
    })
  })

  test('with one all is well, until a sync is long overdue', async () => {
    await beat(['sync'], secondsAgo(1))
    expect(await checkAudiences(pool, now)).toMatchObject({ state: 'ok' })
    const due = (seconds: number) =>
      pool.query(
        `insert into sync_schedule (audience_id, version, slot, started_at, next_sync_at)
         values (1, 1, 1, $1, $1)
         on conflict (audience_id) do update set next_sync_at = excluded.next_sync_at`,
        [secondsAgo(seconds)],
      )
    await pool.query(
      `insert into audience_state (audience_id, version, state, condition, definition, workspace_id)
       values (1, 1, 'live', '{}', '', 1)`,
    )
    await pool.query(
      `with hook as (insert into destination (workspace_id, name, type) values (1, 'hook', 'webhook') returning id)
       insert into audience_destination (audience_id, destination_id) select 1, id from hook`,
    )
    await due(60)
    expect(await checkAudiences(pool, now)).toMatchObject({ state: 'ok' })
    await due(3_600)
    expect(await checkAudiences(pool, now)).toMatchObject({
      state: 'warn',
      message: expect.stringMatching(/^a sync has been due for 60 minutes: /),
    })
  })

  test('an audience whose destinations are all off, or that has none, is not overdue', async () => {
    expect(await checkAudiences(pool, now)).toMatchObject({ state: 'warn' })
    await pool.query('update destination set enabled = false')
    expect(await checkAudiences(pool, now)).toMatchObject({ state: 'ok' })
    await pool.query('delete from audience_destination')
    await pool.query('update destination set enabled = true')
    expect(await checkAudiences(pool, now)).toMatchObject({ state: 'ok' })
  })
})

import { expect, test } from 'vitest'
import { command } from '../../src/cli/rebuild.ts'
import { startTestAdmin } from './start.ts'

const { pool, admin, viewer, url } = await startTestAdmin()

const path = '/admin/v1/rebuilds'

const cli = async (...args: readonly string[]) => {
  const out: string[] = []
  const [verb = '', ...rest] = args.filter((arg) => !arg.startsWith('--'))
  const flags = args.filter((arg) => arg.startsWith('--')).map((arg) => [arg.slice(2), true])
  const code = await command.run({
    values: {
      ...Object.fromEntries(flags),
      'admin-url': url,
      'admin-token': 'given-admin-token',
    },
    positionals: [verb, ...rest],
    terminal: { out: (line: string) => out.push(line), err: (line: string) => out.push(line) },
  } as never)
  return { code, text: out.join('\n') }
}

test('a rebuild is asked for, watched, and cancelled; one at a time', async () => {
  expect((await viewer('POST', path)).status).toBe(403)
  const made = await admin('POST', path, { verifyOnly: true })
  expect(made.status).toBe(201)
  const { id } = made.body
  expect(made.body).toMatchObject({ state: 'requested', verifyOnly: true, progress: null })
  expect(await admin('POST', path)).toMatchObject({
    status: 409,
    body: { error: { code: 'rebuild_open' } },
  })
  expect((await viewer('GET', `${path}/${id}`)).body).toEqual(made.body)
  expect((await viewer('GET', path)).body.rebuilds).toEqual([made.body])
  expect((await admin('POST', `${path}/${id}/accept`)).body.error.code).toBe('rebuild_over')
  for (const _ of ['once', 'twice'])
    expect((await admin('POST', `${path}/${id}/cancel`)).body).toMatchObject({ state: 'cancelled' })
  expect((await admin('POST', `${path}/999/cancel`)).status).toBe(404)
  const { rows } = await pool.query(
    `select action from audit_log where kind = 'rebuild' order by id`,
  )
  expect(rows).toEqual([{ action: 'requested' }, { action: 'changed' }])
})

test('one that differs says who differs, and goes on once that is accepted', async () => {
  const { id } = (await admin('POST', path)).body
  const differences = [
    { workspaceId: 1, identity: '0:u1', parts: ['traits'], live: null, rebuilt: null },
  ]
  await pool.query(
    `update rebuild set state = 'differs', users = 7, differing = 1, differences = $1 where id = $2`,
    [JSON.stringify(differences), id],
  )
  const told = await cli('status', String(id))
  expect(told.code).toBe(1)
  expect(told.text).toMatch(/differs +user u1: traits/)
  expect((await cli('status')).text).toMatch(/differs +7 +1/)
  expect((await cli('accept', String(id))).text).toMatch(/state +folding/)
  expect((await admin('GET', `${path}/${id}`)).body).toMatchObject({ acceptsDifferences: true })
  expect((await cli('cancel', String(id))).code).toBe(0)
  expect((await cli('cancel', 'x')).code).toBe(2)
})

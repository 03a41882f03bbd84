import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import { expect, test } from 'vitest'
import { sqlState } from '../../src/postgres/sql.ts'
import { isOutage } from '../../src/project/outage.ts'
import { isPassing } from '../../src/replay/lead.ts'

test('a write that the other side no longer reads is a lost connection, not a refused statement', async () => {
  const { stdin } = spawn('true', { stdio: ['pipe', 'ignore', 'ignore'] })
  const failed = once(stdin, 'error')
  // The pipe takes what fits in it: it fails once nobody holds its other end.
  const writing = setInterval(() => stdin.write('x'.repeat(65_536)), 5)
  const [error] = await failed
  clearInterval(writing)
  expect((error as { code?: unknown }).code).toBe('EPIPE')
  expect(sqlState(error)).toBe(null)
  expect(isOutage(error)).toBe(true)
  expect(isPassing(error)).toBe(true)
})

test('no code of the operating system is taken for an SQLSTATE', () => {
  const codes = Object.keys(constants.errno)
  expect(codes.filter((code) => code.length === 5)).toContain('EPIPE')
  expect(codes.filter((code) => sqlState({ code }) !== null)).toEqual([])
  for (const code of ['08006', '25P03', '40001', '57P01', 'XX000', 'P0001', 'HV00B', 'F0000'])
    expect(sqlState({ code })).toBe(code)
})

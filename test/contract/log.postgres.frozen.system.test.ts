// A process that is frozen while it holds the locks of its group.
import { fork } from 'node:child_process'
import { expect, test } from 'vitest'
import { postgresSource } from '../../src/log/postgres.ts'
import { cloneDatabase } from '../support/database.ts'
import { aGroup, eventually, follow } from './log.harness.ts'

const database = await cloneDatabase()

test('a member that is frozen in its beat loses its partitions, and nobody else loses any', async () => {
  const group = aGroup()
  const child = fork(new URL('../support/log-member.ts', import.meta.url), [database.url, group])
  let held = 0
  child.on('message', (count: number) => {
    held = count
  })
  const source = postgresSource({ pool: database.pool })
  try {
    await eventually('the child holds everything', () => held === 12)
    const gained: number[] = []
    const follower = follow(source, {
      group,
      from: () => 0n,
      gained: ({ partition }) => {
        gained.push(partition)
      },
    })
    await eventually('they share', () => follower.held().length === 6 && held === 6)
    child.send('freeze')
    await eventually('the other takes over', () => follower.held().length === 12, 30_000)
    // None of them twice: its own beats have waited for less than they may take.
    expect(gained.sort((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, at) => at))
    child.kill('SIGCONT')
    await eventually('it comes back', () => held === 6 && follower.held().length === 6)
  } finally {
    await source.close()
    child.kill('SIGKILL')
  }
})

// What pages with the file consumer wrote may also be imported, by file, long after.
import { join } from 'node:path'
import { expect, inject } from 'vitest'
import { freshId } from '../clients/line.ts'
import { runCommand } from '../support/command.ts'
import { until } from '../support/until.ts'
import { lineOfFile, writeKey } from './line.ts'
import { phpTest, runPage, tempFolder } from './page.ts'

const held = lineOfFile()

phpTest('the log of the file consumer is imported as it is', async () => {
  const userId = freshId('user')
  const filename = join(await tempFolder(), 'analytics.log')
  await runPage({
    writeKey,
    options: { consumer: 'file', filename },
    calls: [
      ['identify', { userId, traits: { plan: 'pro' } }],
      ['track', { userId, event: 'Order Completed', properties: { revenue: 12.5 } }],
    ],
  })
  const { adminUrl, token } = inject('millrace')
  const command = runCommand(
    [
      ...['import', filename, '--write-key', writeKey],
      ...['--admin-url', adminUrl, '--admin-token', token],
    ],
    {},
  )
  expect(await command.ended, command.err()).toBe(0)
  expect(command.out()).toBe('analytics.log: 2 imported, 0 rejected\n')
  await until(() => held.line.bodiesOf(userId).length === 2, 'both calls arrive')
  expect(held.line.bodiesOf(userId)).toMatchObject([
    { type: 'identify', traits: { plan: 'pro' } },
    { type: 'track', event: 'Order Completed', properties: { revenue: 12.5 } },
  ])
})

// However a page ends, its calls are sent; and who looks at the machine's processes meanwhile learns nothing.
import { readdir, readFile } from 'node:fs/promises'
import { describe, expect } from 'vitest'
import { freshId, settled } from '../clients/line.ts'
import { until } from '../support/until.ts'
import { lineOfFile, visit, writeKey } from './line.ts'
import { consumers, type Order, phpTest, startPage } from './page.ts'
import { openServer } from './servers.ts'

const held = lineOfFile()

const ends = [
  ['returns', undefined, 0],
  ['flushes itself', 'flush', 0],
  ['exits', 'exit', 0],
  ['calls what does not exist', 'fatal', 255],
  ['throws', 'throw', 255],
  ['runs out of memory', 'memory', 255],
] as const

describe.for(consumers.map((consumer) => ({ consumer })))(
  'through $consumer, a page that',
  ({ consumer }) => {
    phpTest.for(ends)('%s has its calls sent', async ([, end, code]) => {
      const userId = freshId('user')
      const calls: Order['calls'] = [0, 1, 2].map((n) => [
        'track',
        { userId, event: 'Counted', properties: { n } },
      ])
      const ending = end === undefined ? {} : { end }

      const ran = await visit(held.line.collectUrl, { consumer, calls, ...ending })

      expect(ran.code).toBe(code)
      expect(ran.heard).toEqual([])
      await until(() => held.line.bodiesOf(userId).length >= 3, `calls of ${userId} arrive`)
      await settled(held.line, { writeKey, userId, newId: userId })
      const numbers = held.line
        .bodiesOf(userId)
        .map(({ properties }) => (properties as { n: number }).n)
      expect(numbers).toEqual([0, 1, 2])
    })
  },
)

/** What any user of the machine can read of its processes. */
const commandLines = async (): Promise<readonly string[]> => {
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = ids.map((id) => readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => ''))
  return (await Promise.all(lines)).map((line) => line.replaceAll('\0', ' '))
}

phpTest('fork_curl shows neither key nor body on a command line', async () => {
  const [key, secret] = [freshId('wk'), freshId('secret')]
  const server = await openServer()
  const options = { consumer: 'fork_curl', host: server.url }
  const calls: Order['calls'] = [['track', { userId: secret, event: secret }]]

  const { done } = await startPage({ writeKey: key, options, calls })

  // The server holds the request open: curl is alive while we look.
  await until(() => server.seen.length === 1, 'the request comes')
  const lines = await commandLines()
  const curls = lines.filter((line) => /(^|\/)curl /.test(line))
  expect(curls.length).toBeGreaterThan(0)
  const encoded = [key, `${key}:`].map((text) =>
    Buffer.from(text).toString('base64').replace(/=+$/, ''),
  )
  for (const hidden of [key, secret, ...encoded.map((text) => text.slice(0, -1))])
    expect(lines.filter((line) => line.includes(hidden))).toEqual([])
  expect(server.seen[0]?.headers['authorization']).toBe(
    `Basic ${Buffer.from(`${key}:`).toString('base64')}`,
  )
  expect(server.seen[0]?.body.toString('utf8')).toContain(secret)
  await done
})

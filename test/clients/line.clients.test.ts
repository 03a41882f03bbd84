// What the suites of clients count by: what Millrace itself sent again is one call, what a client sent twice is two.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { aMinuteAgo, freshId, type Line, once, openLine, settled } from './line.ts'

const writeKey = freshId('wk')
let line: Line

beforeAll(async () => {
  line = await openLine(freshId('lines'), [{ name: 'server', class: 'server', writeKey }])
})

afterAll(() => line.close())

const take = async (userId: string, messageIds: readonly string[]) => {
  const call = { type: 'track', event: 'Twice', userId, timestamp: aMinuteAgo() }
  const batch = messageIds.map((messageId) => ({ ...call, messageId }))
  const response = await fetch(`${line.collectUrl}/v1/batch`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}` },
    body: JSON.stringify({ batch }),
  })
  expect(response.status).toBe(200)
}

test('what a receiver answered with an error, and was sent again, counts once', async () => {
  const userId = freshId('u')
  line.receiver.reply(({ json }) => {
    const isFirst = line.bodiesOf(userId).length === 1
    return json['userId'] === userId && isFirst ? 503 : 200
  })
  await take(userId, [freshId('m')])
  await until(() => line.bodiesOf(userId).length >= 2, 'it is sent again')
  await settled(line, { writeKey, userId, newId: userId })
  expect(await once(line, line.bodiesOf(userId))).toHaveLength(1)
})

test('a call sent twice under two ids is found out', async () => {
  const userId = freshId('u')
  await take(userId, [freshId('m'), freshId('m')])
  await settled(line, { writeKey, userId, newId: userId })
  await expect(once(line, line.bodiesOf(userId))).rejects.toThrow('places of')
})

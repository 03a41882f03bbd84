// What a call carries from its request to the body a webhook gets, through collect's own stored bytes.
import { expect, test } from 'vitest'
import { isFixedPoint, render } from '../../src/domain/payload.ts'
import { startCollecting } from '../support/collecting.ts'

const traits = {
  'Company Name': 'Acme & Söhne',
  ' leading': 1,
  'trailing ': 2,
  'tab\tand\nline': 3,
  '\u00a0': 4,
  '': 5,
  employees: 1e21,
  'Nested Map': { 'Inner Key': [{ 'In A List': null }] },
}

test.each([
  ['/v1/group', {}],
  ['/v1/g', {}],
  ['/v1/batch', { type: 'group' }],
])('the traits of a group sent to %s reach a webhook with their spaces', async (path, typed) => {
  const { post, log } = await startCollecting()
  const call = { ...typed, userId: 'u 1', groupId: 'g 1', traits }
  const body = path === '/v1/batch' ? { batch: [call] } : call
  expect((await post(path, body)).status).toBe(200)
  const { message } = log.appended[0] as (typeof log.appended)[0]
  const sent = render(message, JSON.parse(Buffer.from(message.body).toString()))
  expect(isFixedPoint(sent)).toBe(true)
  expect(JSON.stringify(JSON.parse(sent.toString()).traits)).toBe(JSON.stringify(traits))
  expect(JSON.parse(sent.toString())).toMatchObject({ userId: 'u 1', groupId: 'g 1' })
})

test('a batch’s own message id is no call’s', async () => {
  const { post, log } = await startCollecting()
  const call = { type: 'track', userId: 'u1', event: 'e' }
  await post('/v1/batch', {
    messageId: 'of-the-batch',
    batch: [call, { ...call, messageId: 'own' }],
  })
  const [made, own] = log.appended.map(({ message }) => message.messageId)
  expect(made).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(own).toBe('own')
})

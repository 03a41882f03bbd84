import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { startCollecting } from '../support/collecting.ts'

const asksForTunnel = (port: number) =>
  new Promise<void>((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('data', () => socket.resetAndDestroy())
    socket.once('close', () => resolve())
    socket.once('error', reject)
    socket.write('CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n')
  })

test('who asks for a tunnel and resets the connection harms nobody else', async () => {
  const { url, post } = await startCollecting()
  for (let at = 0; at < 10; at += 1) await asksForTunnel(Number(new URL(url).port))
  expect((await post('/v1/track', { userId: 'u1', event: 'e' })).status).toBe(200)
})

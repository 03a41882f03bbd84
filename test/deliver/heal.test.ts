// A certificate that was refused and is good again: what died of it goes out by itself where that was asked for.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { Server } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { closeServers, listen } from '../http/servers.ts'
import { aDestination, aLive, aWebhook } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const pem = (name: string) => readFileSync(new URL(`../http/tls/${name}`, import.meta.url), 'utf8')

describe('a URL whose certificate has healed', async () => {
  const { open, rowsOf, drained, database } = await useRig()
  afterAll(closeServers)

  /** Presents a self-signed certificate until it is given one of an authority the URL trusts. */
  const serve = async () => {
    const bodies: string[] = []
    const server = createServer(
      { cert: pem('self.crt'), key: pem('self.key') },
      async (request, response) => {
        let body = ''
        for await (const chunk of request) body += chunk
        bodies.push(body)
        response.end()
      },
    )
    server.on('tlsClientError', () => undefined)
    const url = `https://localhost:${await listen(server as unknown as Server)}/`
    const heal = () => server.setSecureContext({ cert: pem('other.crt'), key: pem('other.key') })
    return { url, bodies, heal }
  }

  const meet = async (replayOnHeal: boolean) => {
    const { url, bodies, heal } = await serve()
    const webhooks = [aWebhook({ url, ca: pem('other-ca.crt') })]
    const live = aLive({ destinations: [aDestination({ webhooks, replayOnHeal })] })
    const line = open(live, { limits: { recoverEveryMs: 20, urlEveryMs: 20 } })
    line.start()
    await line.append([line.aCall({ userId: 'long-ago' })])
    await drained(line)
    line.setNow(line.now() + 5 * 3_600_000)
    await line.append([line.aCall({ userId: 'u1' }), line.aCall({ userId: 'u2' })])
    await drained(line)
    expect((await rowsOf('dead')).map(({ reason }) => reason)).toEqual([
      ...['tls_self_signed', 'tls_self_signed', 'tls_self_signed'],
    ])
    expect(bodies).toEqual([])
    await until(async () => {
      const { rows } = await database.pool.query("select from webhook_url where state = 'held_tls'")
      return rows.length === 1
    }, 'the URL is held')
    heal()
    line.setNow(line.now() + 120_000)
    return { line, bodies }
  }

  test('gets what died within four hours, once, and nothing older', async () => {
    const { bodies } = await meet(true)
    await until(() => bodies.length === 2, 'both go out')
    expect(bodies.map((body) => JSON.parse(body).userId).toSorted()).toEqual(['u1', 'u2'])
    await until(async () => {
      const { rows } = await database.pool.query<{ state: string }>('select state from recovery')
      return rows.length === 1 && rows[0]?.state === 'finished'
    }, 'one recovery, finished')
    const { rows } = await database.pool.query('select origin, reason, recovered from recovery')
    expect(rows).toEqual([{ origin: 'heal', reason: 'tls_self_signed', recovered: 2n }])
    expect(bodies).toHaveLength(2)
  })

  test('gets nothing where that was not asked for', async () => {
    const { line, bodies } = await meet(false)
    await until(async () => {
      const { rows } = await database.pool.query('select from webhook_url')
      return rows.length === 0
    }, 'the URL is well')
    await line.append([line.aCall({ userId: 'sentinel' })])
    await until(() => bodies.length > 0)
    await drained(line)
    expect(bodies.map((body) => JSON.parse(body).userId)).toEqual(['sentinel'])
    expect((await database.pool.query('select from recovery')).rows).toEqual([])
  })
})

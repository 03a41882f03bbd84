// Each program on the page for receivers, run as a server: what a running deliver stage sends it, and what forgers would.
import { createHmac, hash } from 'node:crypto'
import { request } from 'node:http'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { newSharedSecret } from '../../src/control/destination-draft.ts'
import { deliverLimits } from '../../src/deliver/limits.ts'
import { callTypes } from '../../src/domain/message.ts'
import { render } from '../../src/domain/payload.ts'
import { anOutbound, useRig } from '../deliver/rig.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { ownFolder } from '../support/folder.ts'
import { until } from '../support/until.ts'
import { loadPrograms, missingFor, type Program, startProgram, tryProgram } from './programs.ts'

const { receiver, open, rowsOf, drained } = await useRig()
const programs = await loadPrograms()
const folder = await ownFolder('receivers')

const bodies: readonly object[] = [
  { properties: { price: 1.5 }, traits: { plan: 'plus' } },
  { properties: { name: 'Zoë 😀 \u2028 "\\/ <&>' }, traits: { 'ключ\t': '日本\u0007' }, name: 'é' },
  {
    properties: { small: 1e-7, tiny: 5e-324, large: 1e21, whole: 9_007_199_254_740_991 },
    traits: { huge: 1.7976931348623157e308, micro: 1e-6, zero: 0, ten: 1e16 },
    context: { half: 0.1, third: 1 / 3 },
  },
  JSON.parse('{"properties":{"a":3,"10":1,"2":2},"traits":{"b":1,"0":0,"constructor":1,"":{}}}'),
  { properties: { high: '\ud800', low: 'x\udc00y' }, traits: { turned: '\udc00\ud800' } },
  {},
  { properties: { long: '€uro😀 '.repeat(30_000) } },
]

/** A loaded machine must not look like a receiver that fails. */
const patienceMs = 60_000

/** Five processes, each of which opens as many connections to a URL as one does by default. */
const atOnce = 5 * deliverLimits.urlConcurrencyMax

/** Each its own user, so that none waits for another. A call of type delete goes to no destination. */
const everyCall = (rig: ReturnType<typeof open>) =>
  callTypes
    .filter((type) => type !== 'delete')
    .flatMap((type) =>
      bodies.map((body, at) =>
        rig.aCall(
          { type, userId: `u-${type}-${at}`, groupId: `g${at} "ü"`, previousId: `p${at}\ud83d` },
          body,
        ),
      ),
    )

/** What the service itself tells a destination: who joined an audience, and who was deleted. */
const everyNotice = (rig: ReturnType<typeof open>, destinationId: number) => {
  const person = { userId: 'u-\ud83d "ü"', previousId: null, groupId: null, event: null }
  const deleted = { ...person, type: 'delete' as const, timestamp: rig.now() }
  const to = { destinationId, shard: destinationId }
  return [
    anOutbound({ ...to, seq: 1 }),
    anOutbound({ ...to, seq: 2, origin: 'notice', type: 'delete', body: render(deleted, {}) }),
  ]
}

/** Told apart by their digests; whole ones would make a failure unreadable. */
const shown = (lines: readonly Buffer[]) =>
  lines
    .map((line) => `${line.toString('utf8', 0, 80)} ${line.length} ${hash('sha256', line)}`)
    .sort()

const linesOf = (bytes: Buffer): readonly Buffer[] => {
  const end = bytes.indexOf(0x0a)
  return end < 0 ? [] : [bytes.subarray(0, end), ...linesOf(bytes.subarray(end + 1))]
}

const sign = (secret: string, body: string | Buffer, algorithm = 'sha1') =>
  createHmac(algorithm, secret).update(body).digest('hex')

const post = (url: string, body: Buffer, signature: string | null): Promise<number> =>
  new Promise((resolve, reject) => {
    const headers = {
      'content-type': 'application/json',
      'content-length': body.length,
      ...(signature === null ? {} : { 'x-signature': signature }),
    }
    const sent = request(url, { method: 'POST', headers, agent: false }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0))
    })
    sent.once('error', reject).end(body)
  })

/** Announces more than it sends, and goes. */
const abort = (url: string, body: Buffer): Promise<void> =>
  new Promise((resolve) => {
    const headers = { 'content-length': body.length + 10, 'x-signature': sign('', body) }
    const sent = request(url, { method: 'POST', headers, agent: false })
    sent.once('error', () => resolve()).once('close', () => resolve())
    sent.write(body, () => sent.destroy())
  })

const runs = (program: Program, secret: string) =>
  startProgram(program, { folder: join(folder, program.file), secret })

test('the page has a program for each of the six languages', () => {
  expect(programs.map(({ file }) => file)).toEqual([
    'receiver.mjs',
    'receiver.py',
    'receiver.php',
    'receiver.go',
    'receiver.rb',
    'Receiver.java',
  ])
})

/** In CI what is missing fails; elsewhere it is skipped, and said so. */
const isSkipped = (program: Program): boolean => {
  const missing = process.env['CI'] === 'true' ? null : missingFor(program.command)
  if (missing !== null)
    process.stderr.write(`NO ${missing}: the tests of ${program.file} are skipped\n`)
  return missing !== null
}

describe.each(programs.map((program) => ({ ...program, skip: isSkipped(program) })))(
  '$file',
  ({ skip, ...program }) => {
    test.skipIf(skip)('takes all that deliver sends, of every type, byte for byte', async () => {
      const secret = newSharedSecret()
      const running = await runs(program, secret)
      try {
        const record = await receiver(secret)
        const destinations = [
          aDestination({ id: 1, name: 'A', webhooks: to(running.url), sharedSecret: secret }),
          aDestination({ id: 2, name: 'B', webhooks: to(record.url), sharedSecret: secret }),
        ]
        const rig = open(aLive({ destinations }))
        rig.start({}, patienceMs)
        const calls = everyCall(rig)
        await rig.append(calls)
        await rig.appendOutbound([...everyNotice(rig, 1), ...everyNotice(rig, 2)])
        await drained(rig)
        expect(await rowsOf('dead')).toEqual([])
        expect(await rowsOf('parked')).toEqual([])
        expect(record.badSignatures).toEqual([])
        expect(record.requests.length).toBe(calls.length + 2)
        const types = new Set(record.requests.map(({ json }) => json['type']))
        expect(types).toEqual(new Set(callTypes))
        await until(() => linesOf(running.kept()).length === calls.length + 2, 'all is kept')
        expect(shown(linesOf(running.kept()))).toEqual(
          shown(record.requests.map(({ body }) => body)),
        )
      } finally {
        await running.stop()
      }
    })

    test.skipIf(skip)('answers 401 to what deliver signs with another secret', async () => {
      const running = await runs(program, newSharedSecret())
      try {
        const webhooks = to(running.url)
        const rig = open(
          aLive({ destinations: [aDestination({ webhooks, sharedSecret: newSharedSecret() })] }),
        )
        rig.start({}, patienceMs)
        const calls = everyCall(rig).slice(0, 2 * bodies.length)
        await rig.append(calls)
        await drained(rig)
        const dead = await rowsOf('dead')
        expect(dead.map(({ reason }) => reason)).toEqual(calls.map(() => 'status_401'))
        expect(running.kept().length).toBe(0)
      } finally {
        await running.stop()
      }
    })

    test.skipIf(skip)(
      'answers 401 to every forgery, and goes on with what is genuine',
      async () => {
        const secret = newSharedSecret()
        const running = await runs(program, secret)
        try {
          const body = Buffer.from('{"version":1,"type":"track","properties":{"é":1e-7}}')
          const genuine = sign(secret, body)
          const flipped = `${genuine.slice(0, -1)}${genuine.endsWith('0') ? '1' : '0'}`
          const forgeries: readonly (readonly [Buffer, string | null])[] = [
            [body, null],
            [body, ''],
            [body, '0'],
            [body, flipped],
            [body, genuine.slice(0, -1)],
            [body, `${genuine}0`],
            [body, `sha1=${genuine}`],
            [body, '0'.repeat(40)],
            [body, 'é'.repeat(40)],
            [body, 'é'.repeat(20)],
            [body, sign(secret, body, 'sha256')],
            [body, sign(newSharedSecret(), body)],
            [Buffer.from(`${body} `), genuine],
            [Buffer.from(JSON.stringify(JSON.parse(String(body)), null, 1)), genuine],
            [Buffer.from(body.toString().replace('track', 'trick')), genuine],
            [Buffer.alloc(0), genuine],
          ]
          await abort(running.url, body)
          for (const [bytes, signature] of forgeries)
            expect([signature, await post(running.url, bytes, signature)]).toEqual([signature, 401])
          expect(await post(running.url, body, genuine)).toBe(200)
          await until(() => running.kept().length > 0, 'it is kept')
          expect(running.kept()).toEqual(Buffer.from(`${body}\n`))
        } finally {
          await running.stop()
        }
      },
    )

    test.skipIf(skip)('answers every one of many that connect at once', async () => {
      const secret = newSharedSecret()
      const running = await runs(program, secret)
      try {
        const body = Buffer.from(JSON.stringify({ long: 'x'.repeat(3_000) }))
        const signature = sign(secret, body)
        const bursts = 3
        for (let burst = 0; burst < bursts; burst += 1) {
          const posts = Array.from({ length: atOnce }, () => post(running.url, body, signature))
          expect(new Set(await Promise.all(posts))).toEqual(new Set([200]))
        }
        await until(
          () => running.kept().length === bursts * atOnce * (body.length + 1),
          'all is kept',
        )
      } finally {
        await running.stop()
      }
    })

    test.skipIf(skip).each([
      ['no secret', null],
      ['an empty secret', ''],
    ])('takes nothing when it has %s', async (_, secret) => {
      const start = await tryProgram(program, { folder: join(folder, program.file), secret })
      if ('ended' in start) {
        expect(start.ended).not.toBe(0)
        expect(start.said).toContain('MILLRACE_SECRET')
        return
      }
      try {
        const body = Buffer.from('{}')
        for (const signature of [null, '', sign('', body)])
          expect(await post(start.running.url, body, signature)).toBe(500)
        expect(start.running.kept().length).toBe(0)
      } finally {
        await start.running.stop()
      }
    })
  },
)

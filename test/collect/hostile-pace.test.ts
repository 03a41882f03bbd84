import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import {
  aCall,
  authorization,
  type Case,
  post,
  raw,
  runCase,
  startHostile,
  testHostile,
} from '../support/hostile.ts'
import { openRaw, type RawConnection } from '../support/raw-http.ts'
import { until } from '../support/until.ts'

const hostile = startHostile()

const call = aCall('m1')
const whole = post('/v1/track', call)
const unfinished = raw('POST /v1/track', [authorization, 'content-length: 1000'], call)
const timedOut = '503 request_timeout'

/** The stage that waits 800 ms for a request. */
const slow: readonly Case[] = (
  [
    ['a length longer than the body', unfinished],
    ['a head that never ends', whole.subarray(0, 40)],
    ['a request line that never ends', 'POST /v1/tr'],
    ['one byte of a body', whole.subarray(0, -call.length + 1)],
    ['a body without its last byte', whole.subarray(0, -1)],
    [
      'a chunk that never ends',
      raw('POST /v1/track', [authorization, 'transfer-encoding: chunked'], `fff\r\n${call}`),
    ],
    [
      'chunks without the last',
      raw(
        'POST /v1/track',
        [authorization, 'transfer-encoding: chunked'],
        `5\r\n${call.slice(0, 5)}\r\n`,
      ),
    ],
    [
      'gzip without its end',
      raw(
        'POST /v1/track',
        [authorization, 'content-encoding: gzip', 'content-length: 1000'],
        gzipSync(call),
      ),
    ],
    [
      'a promise of 4 GB',
      raw('POST /v1/track', [authorization, 'content-length: 4294967296'], call),
    ],
    [
      'an expectation to continue, and then nothing',
      raw('POST /v1/track', [authorization, 'expect: 100-continue', 'content-length: 50']),
    ],
  ] as const
).map(([name, bytes]) => ({
  name,
  bytes,
  answers: [timedOut],
  isUnfinished: true,
  at: 'hasty' as const,
}))

const behindOthers: readonly Case[] = [
  {
    name: 'a good call, then one that never ends: each has its answer',
    bytes: [whole, unfinished],
    answers: ['200', timedOut],
    appended: ['m1'],
    isUnfinished: true,
    at: 'hasty',
  },
  {
    name: 'an unknown key and a body that never comes: one answer',
    bytes: raw('POST /v1/track', [
      `authorization: Basic ${btoa('nobody:')}`,
      'content-length: 1000',
    ]),
    answers: ['401 unknown_write_key'],
    isUnfinished: true,
    at: 'hasty',
  },
]

const partings: readonly Case[] = [
  { name: 'nothing at all', bytes: '', answers: [], parting: 'end' },
  {
    name: 'half a head',
    bytes: whole.subarray(0, 30),
    answers: ['400 malformed_request'],
    parting: 'end',
  },
  {
    name: 'half a body, and a good-bye',
    bytes: unfinished,
    answers: ['400 malformed_request'],
    parting: 'end',
  },
  { name: 'half a body, and an abort', bytes: unfinished, answers: [], parting: 'abort' },
  {
    name: 'half a chunk, and an abort',
    bytes: raw(
      'POST /v1/batch',
      [authorization, 'transfer-encoding: chunked'],
      `fff\r\n{"batch":[${call},`,
    ),
    answers: [],
    parting: 'abort',
  },
  {
    name: 'all of a call, and a good-bye: it is answered',
    bytes: whole,
    answers: ['200'],
    appended: ['m1'],
    parting: 'end',
  },
  {
    name: 'a good call and half another, and a good-bye',
    bytes: [whole, unfinished],
    answers: ['200', '400 malformed_request'],
    appended: ['m1'],
    parting: 'end',
  },
]

describe('what does not end in time is told so, and its connection closed:', () => {
  testHostile(hostile, slow)
  testHostile(hostile, behindOthers)
})

describe('a client leaves after', () => testHostile(hostile, partings))

/** One piece after the other, for as long as the other side listens. */
const trickle = async (connection: RawConnection, pieces: Iterable<string>) => {
  for (const piece of pieces) {
    if (!connection.isOpen() || connection.answers.length > 0) return
    await connection.write(piece)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

const forever = function* (piece: string) {
  for (;;) yield piece
}

test.each([
  ['a body', unfinished.subarray(0, -call.length).toString(), ' '],
  ['a head', 'POST /v1/track HTTP/1.1\r\n', 'x: y\r\n'],
  ['empty lines', '', '\r\n'],
])('%s that comes byte by byte, for ever, is given up', async (_, begin, piece) => {
  const connection = await openRaw(hostile.urls().hasty)
  await connection.write(begin)
  await trickle(connection, forever(piece))
  await until(() => !connection.isOpen(), 'the stage closes the connection')
  await runCase(hostile, { name: '', bytes: whole, answers: ['200'], appended: ['m1'] })
})

test('a connection that says nothing is closed', async () => {
  const connection = await openRaw(hostile.urls().hasty)
  await until(() => !connection.isOpen(), 'the stage closes the connection')
})

test('a client that keeps its side open after an error does not keep the connection', async () => {
  const connection = await openRaw(hostile.urls().patient)
  await connection.write('garbage\r\n\r\n')
  await connection.answered(1)
  // Only what is sent to it tells a client that the other side has gone.
  await until(async () => {
    await connection.write('x')
    return connection.isGone()
  }, 'the connection is gone')
})

test('a call that arrives slowly, but in time, is taken', async () => {
  const connection = await openRaw(hostile.urls().patient)
  await hostile.account()
  await trickle(connection, whole.toString('latin1').match(/.{1,16}/gs) ?? [])
  await connection.answered(1)
  expect(connection.answers[0]?.status).toBe(200)
  expect((await hostile.account()).appended).toEqual(['m1'])
  connection.abort()
})

test('two hundred clients that never finish do not keep others out', async () => {
  const connections = await Promise.all(
    Array.from({ length: 200 }, () => openRaw(hostile.urls().patient)),
  )
  for (const connection of connections) await connection.write(unfinished)
  await runCase(hostile, { name: '', bytes: whole, answers: ['200'], appended: ['m1'] })
  for (const connection of connections) connection.abort()
})

const bomb = gzipSync(Buffer.alloc(64 * 1_048_576, ' '))

test('five hundred bombs, thirty-two at a time, are each refused', async () => {
  const told = new Map<string, number>()
  const drive = async () => {
    for (let at = 0; at < 16; at += 1) {
      const connection = await openRaw(hostile.urls().patient)
      await connection.write(post('/v1/batch', bomb, ['content-encoding: gzip']))
      await connection.answered(1)
      const code = /"code":"(\w+)"/.exec(connection.answers[0]?.body ?? '')?.[1] ?? ''
      told.set(code, (told.get(code) ?? 0) + 1)
      connection.abort()
    }
  }
  await Promise.all(Array.from({ length: 32 }, drive))
  const refusals = [...told.values()].reduce((sum, amount) => sum + amount, 0)
  expect(refusals).toBe(512)
  // Whoever comes when memory is short is told to come again; nobody is told anything else.
  expect(
    [...told.keys()].filter((code) => !['request_too_large', 'overloaded'].includes(code)),
  ).toEqual([])
  await runCase(hostile, { name: '', bytes: whole, answers: ['200'], appended: ['m1'] })
})

test('a thousand connections that only open and close leave nothing behind', async () => {
  for (let at = 0; at < 1_000; at += 1) (await openRaw(hostile.urls().patient)).abort()
  await runCase(hostile, { name: '', bytes: whole, answers: ['200'], appended: ['m1'] })
})

// Answers off a connection: what their heads say, where they end, and that it does not matter how their bytes come.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseHead } from '../../src/http/answer-head.ts'
import { openAnswerReader, type Told } from '../../src/http/answer-reader.ts'

/** What is told of an answer whose bytes come in these pieces, and what was read of it by then. */
const readIn = (pieces: readonly Buffer[], headersBytesMax = 16_384) => {
  const reader = openAnswerReader(headersBytesMax)
  let told: Told = 'more'
  let at = 0
  for (; at < pieces.length && told === 'more'; at += 1) told = reader.read(pieces[at] as Buffer)
  if (told === 'complete' && at < pieces.length) told = 'excess'
  return { told, head: reader.head(), body: reader.body().toString('latin1') }
}

const read = (text: string) => readIn([Buffer.from(text, 'latin1')])
const byteByByte = (text: string) =>
  readIn([...Buffer.from(text, 'latin1')].map((byte) => Buffer.from([byte])))

const chunkedHead = 'HTTP/1.1 500 Oops\r\ntransfer-encoding: chunked\r\n\r\n'

const answers = {
  'no body': 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n',
  'a body of its length': 'HTTP/1.1 503 Busy\r\nContent-Length: 3\r\nretry-after: 7\r\n\r\nwhy',
  'no reason': 'HTTP/1.1 404\r\ncontent-length: 1\r\n\r\nx',
  'informational ones first': `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nlink: </a>\r\n\r\n${chunkedHead}0\r\n\r\n`,
  chunks: `${chunkedHead}3\r\nwhy\r\nA;name="v"\r\n0123456789\r\n0\r\ntrailer: x\r\n\r\n`,
  'as many informational ones as are borne first': `${'HTTP/1.1 103 Hints\r\n\r\n'.repeat(32)}HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n`,
  'names that every object has':
    'HTTP/1.1 200 OK\r\nconstructor: a\r\nvalueOf: b\r\n__proto__: c\r\ncontent-length: 0\r\n\r\n',
  'nothing after 204': 'HTTP/1.1 204 No Content\r\n\r\n',
}

const broken = {
  'another protocol': 'SSH-2.0-OpenSSH_9.6\r\n',
  'another version': 'HTTP/2.0 200 OK\r\n\r\n',
  'informational ones without end': 'HTTP/1.1 103 Hints\r\n\r\n'.repeat(33),
  'a status of two digits': 'HTTP/1.1 20 OK\r\n\r\n',
  'lines that end in a line feed alone': 'HTTP/1.1 200 OK\ncontent-length: 0\n\r\n\r\n',
  'a header without a colon': 'HTTP/1.1 200 OK\r\nbad header\r\n\r\n',
  'a blank before the colon': 'HTTP/1.1 200 OK\r\ncontent-length : 0\r\n\r\n',
  'a folded header': 'HTTP/1.1 200 OK\r\nx: a\r\n b\r\n\r\n',
  'a NUL in a value': 'HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n',
  'a length with what only looks like a blank': 'HTTP/1.1 200 OK\r\ncontent-length: 5\xa0\r\n\r\n',
  'a control character behind many blanks': `HTTP/1.1 200 OK\r\nx:${' '.repeat(16_000)}\x01\r\n\r\n`,
  'two equal lengths': 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\nx',
  'a negative length': 'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n',
  'a list of lengths': 'HTTP/1.1 200 OK\r\ncontent-length: 1, 1\r\n\r\nx',
  'length and chunks': `HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`,
  'another protocol asked for': 'HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n',
  'a chunk of no size': `${chunkedHead}\r\n`,
  'a chunk of a size nobody can say': `${chunkedHead}g\r\n`,
  'a chunk that is longer than it says': `${chunkedHead}1\r\nab\r\n0\r\n\r\n`,
  'a chunk size without an end': `${chunkedHead}1;${'x'.repeat(2_000)}`,
}

describe('an answer', () => {
  test.each(Object.entries(answers))('with %s is complete at its last byte', (_name, text) => {
    expect(read(text).told).toBe('complete')
    expect(read(text.slice(0, -1)).told).toBe('more')
    expect(read(`${text}H`).told).toBe('excess')
    expect(byteByByte(text)).toEqual(read(text))
  })

  test.each(Object.entries(broken))('with %s is malformed', (_name, text) => {
    expect(read(text).told).toBe('malformed')
    expect(byteByByte(text).told).toBe('malformed')
  })

  test('gives the data of its body, however that is coded, and of a success none', () => {
    expect(read(answers['a body of its length']).body).toBe('why')
    expect(read(answers.chunks).body).toBe('why0123456789')
    expect(read('HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyes').body).toBe('')
  })

  test('without length or chunks ends with its connection', () => {
    const reader = openAnswerReader(100)
    expect(reader.read(Buffer.from('HTTP/1.1 500 Oops\r\n\r\nwhy'))).toBe('more')
    expect(reader.end()).toBe('complete')
    reader.begin()
    expect(reader.read(Buffer.from('HTTP/1.1 500 Oops\r\ncontent-length: 9\r\n\r\nwhy'))).toBe(
      'more',
    )
    expect(reader.end()).toBe('more')
  })

  test('has a head of bounded size, each informational one before it too', () => {
    const line = `x: ${'v'.repeat(60)}\r\n`
    const hints = `HTTP/1.1 103 Hints\r\n${line}\r\n`
    const ok = 'HTTP/1.1 204 Fine\r\n\r\n'
    expect(readIn([Buffer.from(hints + hints + hints + ok)], 100).told).toBe('complete')
    expect(readIn([Buffer.from(`HTTP/1.1 200 OK\r\n${line}${line}\r\n`)], 100).told).toBe(
      'head_too_large',
    )
    expect(readIn([Buffer.from(`HTTP/1.1 200 OK\r\n${line}${line}`)], 100).told).toBe(
      'head_too_large',
    )
  })

  test('is the same wherever its bytes are cut, also behind others on its connection', () => {
    const texts = [...Object.values(answers), ...Object.values(broken)]
    fc.assert(
      fc.property(
        fc.constantFrom(...texts),
        fc.array(fc.nat({ max: 200 }), { maxLength: 8 }),
        (text, cuts) => {
          const bytes = Buffer.from(text, 'latin1')
          const places = [0, ...cuts.map((cut) => cut % bytes.length), bytes.length]
          places.sort((one, other) => one - other)
          const pieces = places.slice(1).map((end, at) => bytes.subarray(places[at], end))
          const cut = readIn(pieces.filter(({ length }) => length > 0))
          expect(cut).toEqual(read(text))
        },
      ),
    )
  })

  test('follows another one on the same connection', () => {
    const reader = openAnswerReader(1_000)
    for (const text of Object.values(answers)) {
      reader.begin()
      expect(reader.read(Buffer.from(text, 'latin1'))).toBe('complete')
      expect({ head: reader.head(), body: reader.body().toString('latin1') }).toEqual({
        head: read(text).head,
        body: read(text).body,
      })
    }
  })
})

describe('a head', () => {
  test('takes time by its length alone, whatever stands in it', () => {
    const costMs = (text: string): number => {
      const before = process.threadCpuUsage()
      for (let n = 0; n < 5; n += 1) parseHead(text)
      const { user, system } = process.threadCpuUsage(before)
      return (user + system) / 1_000
    }
    const names = ['x', 'connection', 'keep-alive', 'transfer-encoding', 'content-length']
    // The first is no value at all; the second is one, and nothing that is looked for.
    const ends = ['\x01', 'x']
    const fillings = [' ', '\t', ',', ', ', ',close ', 'keep-alive ', 'timeout=1']
    for (const name of names)
      for (const filling of fillings)
        for (const begin of ['', ',', 'close'])
          for (const end of ends) {
            const value = begin + filling.repeat(16_000 / filling.length) + end
            // Each takes a fraction of a millisecond; where bytes are looked at again and again, it was seconds.
            expect(costMs(`HTTP/1.1 200 OK\r\n${name}:${value}`)).toBeLessThan(300)
          }
  })

  const kept = (...lines: readonly string[]) => parseHead(lines.join('\r\n'))?.isKept

  test('says whether its connection is kept', () => {
    const none = 'content-length: 0'
    expect(kept('HTTP/1.1 200 OK', none)).toBe(true)
    expect(kept('HTTP/1.1 200 OK', none, 'Connection: x, Close')).toBe(false)
    expect(kept('HTTP/1.1 200 OK')).toBe(false)
    expect(kept('HTTP/1.0 200 OK', none)).toBe(false)
    expect(kept('HTTP/1.0 200 OK', none, 'connection: Keep-Alive')).toBe(true)
    // Chunks are unknown to it.
    const chunked = 'transfer-encoding: chunked'
    expect(kept('HTTP/1.1 200 OK', chunked)).toBe(true)
    expect(kept('HTTP/1.0 200 OK', chunked, 'connection: keep-alive')).toBe(false)
    // Where there must be no body, one may still follow.
    expect(kept('HTTP/1.1 204 Fine', 'content-length: 5')).toBe(false)
    expect(kept('HTTP/1.1 304 Same', 'transfer-encoding: chunked')).toBe(false)
  })

  test('says how long its connection is kept, and when to come again', () => {
    const head = parseHead(
      [
        'HTTP/1.1 429 Slow',
        'Keep-Alive: timeout=5, max=9',
        'RETRY-AFTER:  7 ',
        'content-length: 0',
      ].join('\r\n'),
    )
    expect(head).toMatchObject({ status: 429, keptMs: 5_000, retryAfter: '7' })
    expect(parseHead('HTTP/1.1 200 OK')).toMatchObject({ keptMs: null, retryAfter: null })
  })
})

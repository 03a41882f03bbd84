import { randomBytes } from 'node:crypto'
import {
  brotliCompressSync,
  deflateRawSync,
  deflateSync,
  gzipSync,
  constants as zlib,
} from 'node:zlib'
import { describe } from 'vitest'
import { aCall, post, type Row, startHostile, testHostile } from '../support/hostile.ts'

const hostile = startHostile()

const encoded = (encoding: string, body: string | Buffer) =>
  post('/v1/track', body, [`content-encoding: ${encoding}`])
const plain = (body: string | Buffer) => post('/v1/track', body)
const megabyte = 1_048_576
const spaces = (bytes: number) => Buffer.alloc(bytes, ' ')
const good = aCall('m1')
const zipped = gzipSync(good)
const [front, back] = [good.slice(0, 20), good.slice(20)]
const flipped = (bytes: Buffer, at: number) => {
  const copy = Buffer.from(bytes)
  copy[at] = (copy[at] ?? 0) ^ 0xff
  return copy
}

/** A quine of sorts: inflates to gzip again, several times over, each a thousandfold. */
const nestedBomb = gzipSync(gzipSync(gzipSync(spaces(64 * megabyte), { level: 9 }), { level: 9 }))

const bombs: readonly Row[] = [
  [
    'gzip of 64 MB of spaces',
    encoded('gzip', gzipSync(spaces(64 * megabyte))),
    '400 request_too_large',
  ],
  [
    'deflate of 64 MB of spaces',
    encoded('deflate', deflateSync(spaces(64 * megabyte))),
    '400 request_too_large',
  ],
  [
    'bare deflate of 64 MB of spaces',
    encoded('deflate', deflateRawSync(spaces(64 * megabyte))),
    '400 request_too_large',
  ],
  [
    'brotli of 256 MB of spaces in a few hundred bytes',
    encoded(
      'br',
      brotliCompressSync(spaces(256 * megabyte), {
        params: { [zlib.BROTLI_PARAM_QUALITY]: 5, [zlib.BROTLI_PARAM_LGWIN]: 24 },
      }),
    ),
    '400 request_too_large',
  ],
  [
    'gzip of a good call followed by 64 MB of spaces',
    encoded('gzip', gzipSync(Buffer.concat([Buffer.from(good), spaces(64 * megabyte)]))),
    '400 request_too_large',
  ],
  ['gzip within gzip within gzip', encoded('gzip', nestedBomb), '400 invalid_json'],
  [
    'gzip within gzip, both named',
    encoded('gzip, gzip', gzipSync(zipped)),
    '400 unsupported_encoding',
  ],
  [
    'gzip of just over 512 KiB that compresses badly',
    encoded(
      'gzip',
      gzipSync(JSON.stringify({ a: randomBytes(300_000).toString('base64') }).padEnd(600_000)),
    ),
    '400 request_too_large',
  ],
  [
    'gzip of exactly 512 KiB',
    encoded(
      'gzip',
      gzipSync(
        Buffer.concat([
          Buffer.from(`${good.slice(0, -1)},"_pad":"`),
          Buffer.from(randomBytes(4_000).toString('hex')),
          Buffer.from('"}'),
          spaces(524_288 - good.length - 8_000 - 10),
        ]),
      ),
    ),
    '200',
    ['m1'],
  ],
  [
    'a thousand empty gzip members',
    encoded('gzip', Buffer.concat(Array.from({ length: 1_000 }, () => gzipSync('')))),
    '400 empty_body',
  ],
  [
    'a good call after a thousand empty gzip members',
    encoded('gzip', Buffer.concat([...Array.from({ length: 1_000 }, () => gzipSync('')), zipped])),
    '200',
    ['m1'],
  ],
]

const encodings: readonly Row[] = [
  [
    'gzip with garbage after its end',
    encoded('gzip', Buffer.concat([zipped, Buffer.from('garbage')])),
    '400 invalid_encoding',
  ],
  [
    'deflate with garbage after its end',
    encoded('deflate', Buffer.concat([deflateSync(good), Buffer.from('garbage')])),
    '400 invalid_encoding',
  ],
  [
    'brotli with garbage after its end',
    encoded('br', Buffer.concat([brotliCompressSync(good), Buffer.from('garbage')])),
    '400 invalid_encoding',
  ],
  [
    'a call in two gzip members',
    encoded('gzip', Buffer.concat([gzipSync(front), gzipSync(back)])),
    '200',
    ['m1'],
  ],
  [
    'two calls in two gzip members',
    encoded('gzip', Buffer.concat([zipped, zipped])),
    '400 invalid_json',
  ],
  ['gzip cut within its header', encoded('gzip', zipped.subarray(0, 5)), '400 invalid_encoding'],
  ['gzip cut within its data', encoded('gzip', zipped.subarray(0, 30)), '400 invalid_encoding'],
  ['gzip without its last byte', encoded('gzip', zipped.subarray(0, -1)), '400 invalid_encoding'],
  [
    'gzip whose second member is cut',
    encoded('gzip', Buffer.concat([gzipSync(front), gzipSync(back).subarray(0, 14)])),
    '400 invalid_encoding',
  ],
  [
    'gzip with a wrong checksum',
    encoded('gzip', flipped(zipped, zipped.length - 8)),
    '400 invalid_encoding',
  ],
  [
    'gzip with a wrong length',
    encoded('gzip', flipped(zipped, zipped.length - 4)),
    '400 invalid_encoding',
  ],
  ['gzip with a flipped bit', encoded('gzip', flipped(zipped, 24)), '400 invalid_encoding'],
  ['gzip of nothing', encoded('gzip', gzipSync('')), '400 empty_body'],
  ['nothing, said to be gzip', encoded('gzip', ''), '400 empty_body'],
  ['nothing, said to be brotli', encoded('br', ''), '400 empty_body'],
  ['JSON, said to be gzip', encoded('gzip', good), '400 invalid_encoding'],
  ['gzip, said to be brotli', encoded('br', zipped), '400 invalid_encoding'],
  ['gzip, said to be deflate', encoded('deflate', zipped), '400 invalid_encoding'],
  ['brotli, said to be gzip', encoded('gzip', brotliCompressSync(good)), '400 invalid_encoding'],
  ['gzip, not said', plain(zipped), '400 invalid_json'],
  ['zstd', encoded('zstd', Buffer.from('28b52ffd', 'hex')), '400 unsupported_encoding'],
  ['an encoding of commas', encoded(',,,', good), '400 unsupported_encoding'],
  [
    'two encodings in two headers',
    post('/v1/track', zipped, ['content-encoding: gzip', 'content-encoding: br']),
    '400 unsupported_encoding',
  ],
  ['an encoding named after a prototype', encoded('__proto__', good), '400 unsupported_encoding'],
]

const bytes = (...parts: readonly (string | readonly number[])[]) =>
  Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part))),
  )
const inText = (...raw: number[]) => plain(bytes('{"userId":"u1","event":"', raw, '"}'))

const texts: readonly Row[] = [
  ['an overlong form of a slash', inText(0xc0, 0xaf), '400 invalid_json'],
  ['an overlong form of NUL', inText(0xc0, 0x80), '400 invalid_json'],
  ['a surrogate written as UTF-8', inText(0xed, 0xa0, 0x80), '400 invalid_json'],
  ['a code point beyond the last', inText(0xf4, 0x90, 0x80, 0x80), '400 invalid_json'],
  ['a lone continuation byte', inText(0x80), '400 invalid_json'],
  [
    'a character cut by the end of the body',
    plain(bytes('{"a":"', [0xe2, 0x82])),
    '400 invalid_json',
  ],
  ['Latin-1', inText(0xe9), '400 invalid_json'],
  ['UTF-16 with its mark', plain(Buffer.from(`\ufeff${good}`, 'utf16le')), '400 invalid_json'],
  ['a byte order mark', plain(`\ufeff${good}`), '200', ['m1']],
  ['two byte order marks', plain(`\ufeff\ufeff${good}`), '400 invalid_json'],
  ['nothing but a byte order mark', plain('\ufeff'), '400 invalid_json'],
  ['a raw NUL in a text', inText(0x00), '400 invalid_json'],
  ['a raw NUL after the object', plain(`${good}\0`), '400 invalid_json'],
  [
    'an escaped NUL in an id, a key and a value',
    plain(aCall('m1', ',"anonymousId":"a\\u0000","properties":{"k\\u0000":"v\\u0000"}')),
    '200',
    ['m1'],
  ],
  [
    'escaped lone surrogates in an id, a key and a value',
    plain(aCall('m1', ',"anonymousId":"\\udc00","properties":{"\\ud800":"\\udfff\\ud800"}')),
    '200',
    ['m1'],
  ],
  ['a bad escape', plain(aCall('m1', ',"x":"\\x41"')), '400 invalid_json'],
  ['half an escape', plain('{"userId":"\\u00'), '400 invalid_json'],
  ['a raw line feed in a text', plain('{"userId":"a\nb","event":"e"}'), '400 invalid_json'],
  ['NaN', plain(aCall('m1', ',"x":NaN')), '400 invalid_json'],
  ['Infinity', plain(aCall('m1', ',"x":-Infinity')), '400 invalid_json'],
  ['undefined', plain(aCall('m1', ',"x":undefined')), '400 invalid_json'],
  ['a comment', plain(`/* */${good}`), '400 invalid_json'],
  ['a trailing comma', plain(`${good.slice(0, -1)},}`), '400 invalid_json'],
  ['single quotes', plain("{'userId':'u1'}"), '400 invalid_json'],
  ['a number with leading zeros', plain(aCall('m1', ',"x":007')), '400 invalid_json'],
  ['a hexadecimal number', plain(aCall('m1', ',"x":0x7f')), '400 invalid_json'],
  ['two objects', plain(`${good}${good}`), '400 invalid_json'],
  ['lines of JSON', post('/v1/batch', `${good}\n${good}\n`), '400 invalid_json'],
  ['only white space', plain('   \r\n\t '), '400 invalid_json'],
  ['512 KiB of opening brackets', plain('['.repeat(524_288)), '400 invalid_json'],
  ['512 KiB of opening objects', plain('{"a":'.repeat(104_857)), '400 invalid_json'],
  [
    'the longest run of digits',
    plain(`{"userId":"u1","event":"e","x":${'9'.repeat(500_000)}}`),
    '400 number_out_of_range',
  ],
  [
    'the longest exponent',
    plain(`{"userId":"u1","event":"e","x":1e${'9'.repeat(400_000)}}`),
    '400 number_out_of_range',
  ],
  [
    'a multipart form',
    post(
      '/v1/track',
      `--x\r\ncontent-disposition: form-data; name="data"\r\n\r\n${good}\r\n--x--\r\n`,
      ['content-type: multipart/form-data; boundary=x'],
    ),
    '400 invalid_json',
  ],
  [
    'a form',
    post('/v1/track', `data=${encodeURIComponent(good)}`, [
      'content-type: application/x-www-form-urlencoded',
    ]),
    '400 invalid_json',
  ],
  [
    'XML with an entity that grows',
    post(
      '/v1/track',
      '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><l>&b;</l>',
      ['content-type: application/xml'],
    ),
    '400 invalid_json',
  ],
  [
    'JSON whose type says it is UTF-16',
    post('/v1/track', good, ['content-type: application/json; charset=utf-16le']),
    '200',
    ['m1'],
  ],
]

describe('a bomb is refused before it has grown:', () => testHostile(hostile, bombs))
describe('an encoding that is not what it says:', () => testHostile(hostile, encodings))
describe('a text that is hardly JSON:', () => testHostile(hostile, texts))

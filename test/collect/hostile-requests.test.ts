import { describe } from 'vitest'
import {
  aCall,
  authorization,
  type Case,
  post,
  type Row,
  raw,
  startHostile,
  testHostile,
} from '../support/hostile.ts'

const hostile = startHostile()

const call = aCall('m1')
const { length } = call
const track = 'POST /v1/track'
const asked = (line: string, headers: readonly string[] = [], body = '') =>
  raw(line, [authorization, ...headers], body)
const chunked = (body: string, headers: readonly string[] = []) =>
  asked(track, ['transfer-encoding: chunked', ...headers], body)
const inChunks = (...chunks: readonly string[]) =>
  `${chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')}0\r\n\r\n`
const [front, back] = [call.slice(0, 20), call.slice(20)]
const malformed = '400 malformed_request'

const lengths: readonly (Row | Case)[] = [
  {
    name: 'a length that is too short: the rest is no request',
    bytes: asked(track, ['content-length: 20'], call),
    answers: ['400 invalid_json', malformed],
  },
  ['a length of zero before a call', [asked(track, ['content-length: 0'])], '400 empty_body'],
  ['a negative length', asked(track, ['content-length: -1'], call), malformed],
  ['a length with a sign', asked(track, [`content-length: +${length}`], call), malformed],
  [
    'a length in hexadecimal',
    asked(track, [`content-length: 0x${length.toString(16)}`], call),
    malformed,
  ],
  [
    'a length beyond 64 bits',
    asked(track, ['content-length: 18446744073709551616'], call),
    malformed,
  ],
  [
    'a length that is a list',
    asked(track, [`content-length: ${length}, ${length}`], call),
    malformed,
  ],
  [
    'two lengths that differ',
    asked(track, [`content-length: ${length}`, 'content-length: 5'], call),
    malformed,
  ],
  [
    'the same length twice',
    asked(track, [`content-length: ${length}`, `content-length: ${length}`], call),
    malformed,
  ],
  ['a length and chunks', chunked(inChunks(call), [`content-length: ${length}`]), malformed],
  [
    'chunks and a length',
    asked(track, [`content-length: ${length}`, 'transfer-encoding: chunked'], inChunks(call)),
    malformed,
  ],
  ['chunked twice', chunked(inChunks(call), ['transfer-encoding: chunked']), malformed],
  [
    'chunked, then identity',
    asked(track, ['transfer-encoding: chunked, identity'], inChunks(call)),
    malformed,
  ],
  ['chunked, misspelt', asked(track, ['transfer-encoding: xchunked'], inChunks(call)), malformed],
  [
    'chunked, hidden behind a vertical tab',
    asked(track, ['transfer-encoding: \u000bchunked'], inChunks(call)),
    malformed,
  ],
  [
    'a space before the colon',
    asked(track, ['transfer-encoding : chunked'], inChunks(call)),
    malformed,
  ],
  ['a folded header', asked(track, ['transfer-encoding:', ' chunked'], inChunks(call)), malformed],
  ['neither length nor chunks', asked(track), '400 empty_body'],
]

const chunks: readonly (Row | Case)[] = [
  ['a call in chunks of one byte', chunked(inChunks(...call)), '200', ['m1']],
  [
    'chunks with extensions and a trailer',
    chunked(
      `5;a=b\r\n${call.slice(0, 5)}\r\n${(length - 5).toString(16)};c="d"\r\n${call.slice(5)}\r\n0\r\nx-trailer: 1\r\n\r\n`,
    ),
    '200',
    ['m1'],
  ],
  [
    'a trailer that names another key',
    chunked(
      `${inChunks(call).slice(0, -2)}authorization: Basic ${btoa('wk_off:')}\r\ncontent-length: 5\r\n\r\n`,
    ),
    malformed,
  ],
  ['a chunk size that is no number', chunked(`zz\r\n${call}\r\n0\r\n\r\n`), malformed],
  ['a negative chunk size', chunked(`-5\r\n${call}\r\n0\r\n\r\n`), malformed],
  ['a chunk size beyond 64 bits', chunked(`fffffffffffffffff\r\n${call}\r\n0\r\n\r\n`), malformed],
  ['a chunk longer than it says', chunked(`5\r\n${call}\r\n0\r\n\r\n`), malformed],
  [
    'a chunk without its line end',
    chunked(`${length.toString(16)}\r\n${call}0\r\n\r\n`),
    malformed,
  ],
  [
    'a chunk size followed by a bare line feed',
    chunked(`${length.toString(16)}\n${call}\r\n0\r\n\r\n`),
    malformed,
  ],
  ['an extension without end', chunked(`5;${'x'.repeat(20_000)}\r\n${call}`), malformed],
  [
    'a good chunk, then a bad one',
    chunked(`${front.length.toString(16)}\r\n${front}\r\nzz\r\n${back}\r\n0\r\n\r\n`),
    malformed,
  ],
  [
    '16 MB in chunks',
    chunked(inChunks(...Array.from({ length: 256 }, () => ' '.repeat(65_536)))),
    '400 request_too_large',
  ],
  ['no chunk but the last', chunked('0\r\n\r\n'), '400 empty_body'],
]

const manyHeaders = (count: number) => Array.from({ length: count }, (_, at) => `h${at}: 1`)

const headers: readonly Row[] = [
  ['a header of 20,000 bytes', post('/v1/track', call, [`x: ${'x'.repeat(20_000)}`]), malformed],
  ['a header of 1 MB', post('/v1/track', call, [`x: ${'x'.repeat(1_048_576)}`]), malformed],
  [
    'a header name of 20,000 bytes',
    post('/v1/track', call, [`${'x'.repeat(20_000)}: x`]),
    malformed,
  ],
  ['500 headers', post('/v1/track', call, manyHeaders(500)), '200', ['m1']],
  ['10,000 headers', post('/v1/track', call, manyHeaders(10_000)), malformed],
  ['a header without a colon', post('/v1/track', call, ['nonsense']), malformed],
  ['a header without a name', post('/v1/track', call, [': x']), malformed],
  ['a control character in a header', post('/v1/track', call, ['x: a\u0001b']), malformed],
  ['a NUL in a header', post('/v1/track', call, ['x: a\0b']), malformed],
  ['a bare carriage return in a header', post('/v1/track', call, ['x: a\rb: c']), malformed],
  [
    'headers named after prototypes',
    post('/v1/track', call, ['__proto__: 1', 'constructor: 2', 'hasownproperty: 3']),
    '200',
    ['m1'],
  ],
  [
    'an X-Forwarded-For of 1,000 hops',
    post('/v1/track', call, [`x-forwarded-for: ${Array(1_000).fill('1.2.3.4').join(', ')}`]),
    '200',
    ['m1'],
  ],
  [
    'an X-Forwarded-For that is garbage',
    post('/v1/track', call, ['x-forwarded-for: ,,;"::::\u00ff']),
    '200',
    ['m1'],
  ],
  [
    'retry counts that are no numbers',
    post('/v1/track', call, ['x-retry-count: NaN, 1e999']),
    '200',
    ['m1'],
  ],
  [
    'a User-Agent of 10,000 bytes of Latin-1',
    post('/v1/track', call, [`user-agent: ${'\u00e9'.repeat(10_000)}`]),
    '200',
    ['m1'],
  ],
  [
    'an origin that tries to add a header',
    post('/v1/track', call, ['origin: http://x\u0085y']),
    '200',
    ['m1'],
  ],
  [
    'an upgrade to a WebSocket',
    post('/v1/track', call, ['connection: upgrade', 'upgrade: websocket', 'sec-websocket-key: x']),
    '200',
    ['m1'],
  ],
  [
    'an upgrade to HTTP/2',
    post('/v1/track', call, [
      'connection: upgrade, http2-settings',
      'upgrade: h2c',
      'http2-settings: AAMAAABkAAQAAP__',
    ]),
    '200',
    ['m1'],
  ],
  ['an expectation to continue', post('/v1/track', call, ['expect: 100-continue']), '200', ['m1']],
  ['an expectation nobody knows', post('/v1/track', call, ['expect: a-miracle']), '200', ['m1']],
]

const keyed = (value: string, body = call) =>
  raw(
    track,
    [`content-length: ${Buffer.byteLength(body)}`, ...(value ? [`authorization: ${value}`] : [])],
    body,
  )
const basic = (key: string) => `Basic ${Buffer.from(key, 'latin1').toString('base64')}`
const unknown = '401 unknown_write_key'
const none = '401 no_write_key'

const keys: readonly Row[] = [
  ['no key', keyed(''), none],
  ['an unknown key', keyed(basic('nobody:')), unknown],
  ['a key in other letters', keyed(basic('WK_WEB:')), unknown],
  ['a key with a space before it', keyed(basic(' wk_web:')), unknown],
  ['a key with a control character', keyed(basic('wk_web\u0000:')), unknown],
  ['a key with a line end', keyed(basic('wk_web\r\n:')), unknown],
  ['a key that is no UTF-8', keyed(basic('\xff\xfe:')), none],
  ['a key of a prototype', keyed(basic('__proto__:')), unknown],
  ['a key of 10,000 characters', keyed(basic(`${'k'.repeat(10_000)}:`)), unknown],
  ['an empty key', keyed(basic(':')), none],
  ['a key only as the password', keyed(basic(':wk_web')), none],
  ['Basic and nothing', keyed('Basic'), none],
  ['Basic that is no base64', keyed('Basic %%%%'), none],
  ['Digest', keyed('Digest username="wk_web"'), none],
  ['Bearer and no key in the body', keyed('Bearer wk_web'), none],
  ['the key without its encoding', keyed('Basic wk_web:'), none],
  [
    'two keys in two headers: the first counts',
    raw(
      track,
      [`content-length: ${length}`, authorization, `authorization: ${basic('nobody:')}`],
      call,
    ),
    '200',
    ['m1'],
  ],
  [
    'the key in the query of a route that takes none there',
    raw(`${track}?writeKey=wk_web`, [`content-length: ${length}`], call),
    none,
  ],
  ['a key in the body that is no text', keyed('', aCall('m1', ',"writeKey":["wk_web"]')), none],
  ['a key in the body that is unknown', keyed('', aCall('m1', ',"writeKey":"nobody"')), unknown],
  [
    'calls with keys that differ',
    raw(
      'POST /v1/batch',
      [`content-length: ${2 * aCall('m1', ',"writeKey":"wk_web"').length + 13}`],
      `{"batch":[${aCall('m1', ',"writeKey":"wk_web"')},${aCall('m2', ',"writeKey":"wk_off"')}]}`,
    ),
    none,
  ],
  ['an unknown key and 16 MB', keyed(basic('nobody:'), ' '.repeat(16_777_216)), unknown],
]

const paths: readonly (Row | Case)[] = [
  ...[
    '/v1/../v1/track',
    '/v1/%2e%2e/track',
    '//v1/track',
    '/v1//track',
    '/v1/track/x',
    '/v1/track;x',
    '/v1/TRACK',
    '/v1/track%00',
    '/v1/track\\',
    '/',
    '/v1',
    '/v1/%c0%af',
  ].map(
    (path): Row => [
      `the path ${path}`,
      post(path, call),
      path === '/v1/%c0%af' ? malformed : '404 not_found',
    ],
  ),
  ['half an escape in the path', post('/v1/%', call), malformed],
  [
    'a path that is no path',
    asked('POST v1/track', [`content-length: ${length}`], call),
    malformed,
  ],
  [
    'a whole URL of elsewhere',
    asked('POST http://elsewhere.example/v1/nothing', [`content-length: ${length}`], call),
    '404 not_found',
  ],
  ['an asterisk', asked('POST *', [`content-length: ${length}`], call), '404 not_found'],
  ['a query of 10,000 pairs', post(`/v1/track?${'a=b&'.repeat(3_000)}`, call), '200', ['m1']],
  [
    'a query beyond what a head may hold',
    post(`/v1/track?${'a=b&'.repeat(10_000)}`, call),
    malformed,
  ],
  ['a query of broken escapes', post('/v1/track?%=%&%zz=%zz&__proto__=1', call), '200', ['m1']],
  ['a fragment, which says nothing', post('/v1/track#x', call), '200', ['m1']],
  ['a raw control character in the path', post('/v1/tr\u0001ack', call), malformed],
]

const methods: readonly (Row | Case)[] = [
  ['GET', asked('GET /v1/track'), '405 method_not_allowed'],
  [
    'GET with a body',
    asked('GET /v1/track', [`content-length: ${length}`], call),
    '405 method_not_allowed',
  ],
  ['PUT', asked('PUT /v1/track', [`content-length: ${length}`], call), '405 method_not_allowed'],
  ['DELETE', asked('DELETE /v1/track'), '405 method_not_allowed'],
  ['TRACE', asked('TRACE /v1/track'), '405 method_not_allowed'],
  ['PROPFIND', asked('PROPFIND /v1/track'), '405 method_not_allowed'],
  [
    'a method in small letters',
    asked('post /v1/track', [`content-length: ${length}`], call),
    malformed,
  ],
  ['a method nobody knows', asked('STEAL /v1/track'), malformed],
  ['a method of 10,000 letters', asked(`${'A'.repeat(10_000)} /v1/track`), malformed],
  {
    name: 'CONNECT',
    bytes: 'CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n',
    answers: [malformed],
  },
]

const versions: readonly (Row | Case)[] = [
  ['HTTP/0.9', 'GET /v1/track\r\n\r\n', malformed],
  [
    'HTTP/1.0',
    `POST /v1/track HTTP/1.0\r\n${authorization}\r\ncontent-length: ${length}\r\n\r\n${call}`,
    '200',
    ['m1'],
  ],
  [
    'HTTP/1.0 with a host, kept alive',
    `POST /v1/track HTTP/1.0\r\nhost: x\r\nconnection: keep-alive\r\n${authorization}\r\ncontent-length: ${length}\r\n\r\n${call}`,
    '200',
    ['m1'],
  ],
  [
    'HTTP/1.9',
    `POST /v1/track HTTP/1.9\r\n${authorization}\r\ncontent-length: ${length}\r\n\r\n${call}`,
    malformed,
  ],
  ['HTTP/2, as if it were known', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', malformed],
  [
    'HTTP/1.1 without a host',
    `POST /v1/track HTTP/1.1\r\n${authorization}\r\ncontent-length: ${length}\r\n\r\n${call}`,
    malformed,
  ],
  ['HTTP/1.1 with two hosts', post('/v1/track', call, ['host: other']), '200', ['m1']],
  [
    'bare line feeds',
    `POST /v1/track HTTP/1.1\nhost: x\n${authorization}\ncontent-length: ${length}\n\n${call}`,
    malformed,
  ],
  ['a TLS greeting', Buffer.from('16030100c8010000c40303', 'hex'), malformed],
  ['an SSH greeting', 'SSH-2.0-OpenSSH_9.9\r\n', malformed],
  [
    'random bytes',
    Buffer.from(Array.from({ length: 500 }, (_, at) => (at * 7_919) % 256)),
    malformed,
  ],
  [
    'empty lines before the request',
    Buffer.concat([Buffer.from('\r\n\r\n\r\n'), post('/v1/track', call)]),
    '200',
    ['m1'],
  ],
  ['only a NUL', '\0', malformed],
]

const good = (id: string) => post('/v1/track', aCall(id))
const together = (...requests: readonly (string | Buffer)[]) =>
  Buffer.concat(requests.map((request) => Buffer.from(request)))

const pipelines: readonly Case[] = [
  {
    name: 'three calls at once',
    bytes: together(good('m1'), good('m2'), good('m3')),
    answers: ['200', '200', '200'],
    appended: ['m1', 'm2', 'm3'],
  },
  {
    name: 'a bad call between two good ones',
    bytes: together(good('m1'), post('/v1/track', '{'), good('m3')),
    answers: ['200', '400 invalid_json', '200'],
    appended: ['m1', 'm3'],
  },
  {
    name: 'a call, then garbage: the call is answered for',
    bytes: together(good('m1'), 'garbage\r\n\r\n'),
    answers: ['200', malformed],
    appended: ['m1'],
  },
  {
    name: 'two calls, then a bad chunk: both calls are answered for',
    bytes: together(good('m1'), good('m2'), chunked('zz\r\n')),
    answers: ['200', '200', malformed],
    appended: ['m1', 'm2'],
  },
  {
    name: 'a call whose length hides another',
    bytes: post('/v1/track', `${call}${good('m2')}`),
    answers: ['400 invalid_json'],
  },
  {
    name: 'a chunked call that a length would cut elsewhere',
    bytes: together(chunked(`${inChunks(call)}${good('smuggled')}`, ['content-length: 5'])),
    answers: [malformed],
  },
  {
    name: 'a call behind one with an unknown key and a body',
    bytes: together(keyed(basic('nobody:')), good('m2')),
    answers: [unknown, '200'],
    appended: ['m2'],
  },
  {
    name: 'a call behind one that was found nowhere',
    bytes: together(post('/nowhere', call), good('m2')),
    answers: ['404 not_found', '200'],
    appended: ['m2'],
  },
  {
    name: 'a hundred calls at once',
    bytes: together(...Array.from({ length: 100 }, (_, at) => good(`m${at}`))),
    answers: Array(100).fill('200'),
    appended: Array.from({ length: 100 }, (_, at) => `m${at}`),
  },
]

describe('lengths:', () => testHostile(hostile, lengths))
describe('chunks:', () => testHostile(hostile, chunks))
describe('headers:', () => testHostile(hostile, headers))
describe('keys:', () => testHostile(hostile, keys))
describe('paths:', () => testHostile(hostile, paths))
describe('methods:', () => testHostile(hostile, methods))
describe('versions and other protocols:', () => testHostile(hostile, versions))
describe('several requests on one connection:', () => testHostile(hostile, pipelines))

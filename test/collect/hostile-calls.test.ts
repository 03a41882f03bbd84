import { describe } from 'vitest'
import { aCall, post, type Row, startHostile, testHostile } from '../support/hostile.ts'

const hostile = startHostile()

const track = (body: string) => post('/v1/track', body)
const batch = (...calls: readonly string[]) => post('/v1/batch', `{"batch":[${calls.join()}]}`)
const arrays = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
const objects = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
const mixed = (pairs: number) => `${'[{"a":'.repeat(pairs)}1${'}]'.repeat(pairs)}`
const many = (length: number) => Array.from({ length }, (_, at) => `n${at}`)

/** The call object is the first level, its properties the second. */
const depths: readonly Row[] = [
  [
    'arrays down to level 64',
    track(aCall('m1', `,"properties":{"a":${arrays(62)}}`)),
    '200',
    ['m1'],
  ],
  [
    'arrays down to level 65',
    track(aCall('m1', `,"properties":{"a":${arrays(63)}}`)),
    '400 too_deep',
  ],
  ['objects down to level 64', track(aCall('m1', `,"properties":${objects(63)}`)), '200', ['m1']],
  ['objects down to level 65', track(aCall('m1', `,"properties":${objects(64)}`)), '400 too_deep'],
  [
    'arrays and objects in turn down to level 65',
    track(aCall('m1', `,"properties":{"a":${mixed(32)}}`)),
    '400 too_deep',
  ],
  ['100,000 levels of arrays', track(aCall('m1', `,"x":${arrays(100_000)}`)), '400 too_deep'],
  ['80,000 levels of objects', track(aCall('m1', `,"x":${objects(80_000)}`)), '400 too_deep'],
  ['50,000 levels of both', track(aCall('m1', `,"x":${mixed(50_000)}`)), '400 too_deep'],
  ['a body that is 100,000 arrays', track(arrays(100_000)), '400 body_not_object'],
  [
    'a batch that is 100,000 arrays',
    post('/v1/batch', `{"batch":${arrays(100_000)}}`),
    '200 rejected not_an_object',
  ],
  [
    'a batch whose context is too deep',
    post('/v1/batch', `{"batch":[${aCall('m1')}],"context":${objects(70)}}`),
    '400 too_deep',
  ],
  [
    'a batch whose integrations are too deep',
    post('/v1/batch', `{"batch":[${aCall('m1')}],"integrations":${objects(70)}}`),
    '400 too_deep',
  ],
  [
    'one call of three too deep',
    batch(aCall('m1'), aCall('m2', `,"x":${arrays(70)}`), aCall('m3')),
    '200 rejected too_deep',
    ['m1', 'm3'],
  ],
]

const keys: readonly Row[] = [
  [
    '__proto__ at every level',
    track(
      aCall(
        'm1',
        ',"__proto__":{"admin":true},"properties":{"__proto__":{"a":1},"b":[{"__proto__":null}]},"context":{"__proto__":{"ip":"1"}}',
      ),
    ),
    '200',
    ['m1'],
  ],
  [
    '__proto__ written as an escape',
    track(aCall('m1', ',"\\u005f_proto__":{"a":1}')),
    '200',
    ['m1'],
  ],
  [
    '__proto__ in place of ids and event',
    track('{"messageId":"m1","__proto__":{"userId":"u1","event":"e"}}'),
    '400 no_user_anon_id',
  ],
  [
    '__proto__ in place of a batch',
    post('/v1/batch', `{"__proto__":{"batch":[${aCall('m1')}]}}`),
    '400 batch_not_array',
  ],
  [
    'constructor and prototype',
    track(
      aCall(
        'm1',
        ',"constructor":{"prototype":{"a":1}},"prototype":1,"properties":{"constructor":1,"hasOwnProperty":1,"toString":1,"__defineGetter__":1}',
      ),
    ),
    '200',
    ['m1'],
  ],
  ['toJSON', track(aCall('m1', ',"toJSON":"x","properties":{"toJSON":{"a":1}}')), '200', ['m1']],
  [
    'an object that looks like a promise',
    track(aCall('m1', ',"then":1,"properties":{"then":{}}')),
    '200',
    ['m1'],
  ],
  [
    'an event named __proto__',
    track('{"messageId":"m1","userId":"__proto__","event":"__proto__"}'),
    '200',
    ['m1'],
  ],
  [
    'a type named constructor',
    batch('{"messageId":"m1","userId":"u1","type":"constructor"}'),
    '200 rejected unknown_type',
  ],
  [
    'the same key twice: the last counts',
    track('{"userId":"u1","event":"e","messageId":"first","messageId":"m1"}'),
    '200',
    ['m1'],
  ],
  [
    'an id twice, the last no id',
    track('{"userId":"u1","userId":{},"event":"e","messageId":"m1"}'),
    '400 id_not_string',
  ],
  [
    'two batches in one body: the last counts',
    post('/v1/batch', `{"batch":[${aCall('m1')}],"batch":[${aCall('m2')}]}`),
    '200',
    ['m2'],
  ],
  [
    '2,000 keys that each stand twice',
    track(
      aCall(
        'm1',
        `,"properties":{${[...many(1_000), ...many(1_000)].map((key) => `"${key}":1`).join()}}`,
      ),
    ),
    '200',
    ['m1'],
  ],
  [
    'a key of 30,000 characters',
    track(aCall('m1', `,"properties":{"${'k'.repeat(30_000)}":1}`)),
    '200',
    ['m1'],
  ],
  ['an empty key', track(aCall('m1', ',"":{"":{"":""}}')), '200', ['m1']],
  [
    'keys that are numbers',
    track(aCall('m1', ',"4294967294":1,"-1":2,"properties":{"9007199254740993":1,"0":2}')),
    '200',
    ['m1'],
  ],
]

const numbers: readonly Row[] = [
  ['1e400', track(aCall('m1', ',"x":1e400')), '400 number_out_of_range'],
  [
    '-1e400 in one call of two',
    batch(aCall('m1', ',"properties":{"x":[-1e400]}'), aCall('m2')),
    '200 rejected number_out_of_range',
    ['m2'],
  ],
  [
    '-0, the smallest and the largest',
    track(aCall('m1', ',"x":[-0,5e-324,1.7976931348623157e308,1e-400]')),
    '200',
    ['m1'],
  ],
  [
    'integers beyond what a double holds',
    track(aCall('m1', ',"x":[9007199254740993,123456789012345678901234567890]')),
    '200',
    ['m1'],
  ],
  ['20,000 digits', track(aCall('m1', `,"x":0.${'3'.repeat(20_000)}`)), '200', ['m1']],
  [
    'times at every edge',
    batch(
      ...[
        '1e308',
        '-1e308',
        '8640000000000001',
        '"+275760-09-13T00:00:00.001Z"',
        '"0000-00-00"',
        '{}',
        '[]',
        'true',
        '"99999999999999999999"',
      ].map((time, at) =>
        aCall(`m${at}`, `,"timestamp":${time},"sentAt":${time},"originalTimestamp":${time}`),
      ),
    ),
    '200',
    ['m0', 'm1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7', 'm8'],
  ],
]

const ofSize = (id: string, bytes: number) => {
  const empty = aCall(id, ',"x":""')
  return aCall(id, `,"x":"${'x'.repeat(bytes - empty.length)}"`)
}

const sizes: readonly Row[] = [
  ['a call of 32,768 bytes', track(ofSize('m1', 32_768)), '200', ['m1']],
  ['a call of 32,769 bytes', track(ofSize('m1', 32_769)), '400 call_too_large'],
  [
    'a call whose characters are few and bytes many',
    track(aCall('m1', `,"x":"${'€'.repeat(11_000)}"`)),
    '400 call_too_large',
  ],
  [
    'a call that only its escapes make large',
    track(aCall('m1', `,"x":"${'\\u0041'.repeat(20_000)}"`)),
    '200',
    ['m1'],
  ],
  [
    'a call that its escapes make small',
    track(aCall('m1', `,"x":"${'\u007f'.repeat(20_000)}"`)),
    '200',
    ['m1'],
  ],
  [
    'large calls between small ones',
    batch(aCall('m1'), ofSize('m2', 40_000), aCall('m3'), ofSize('m4', 40_000)),
    '200 rejected call_too_large,call_too_large',
    ['m1', 'm3'],
  ],
  ['a body of 524,288 bytes', track(aCall('m1').padEnd(524_288)), '200', ['m1']],
  ['a body of 524,289 bytes', track(aCall('m1').padEnd(524_289)), '400 request_too_large'],
  ['a body of 16 MB', track(aCall('m1').padEnd(16_777_216)), '400 request_too_large'],
  [
    '2,500 calls',
    batch(
      many(2_500)
        .map((id) => aCall(id))
        .join(),
    ),
    '200',
    many(2_500),
  ],
  [
    '2,501 calls',
    batch(
      many(2_501)
        .map((id) => aCall(id))
        .join(),
    ),
    '400 too_many_calls',
  ],
  ['200,000 numbers as a batch', batch(Array(200_000).fill('1').join()), '400 too_many_calls'],
  [
    '2,500 calls under one large context',
    post(
      '/v1/batch',
      `{"context":{"x":"${'x'.repeat(30_000)}"},"batch":[${many(2_500)
        .map((id) => aCall(id))
        .join()}]}`,
    ),
    '400 request_too_large',
  ],
]

const batches: readonly Row[] = [
  ...['null', '{}', '"x"', '7', 'true', '{"length":1,"0":{}}'].map(
    (value): Row => [
      `a batch that is ${value}`,
      post('/v1/batch', `{"batch":${value}}`),
      '400 batch_not_array',
    ],
  ),
  ['an empty batch', batch(), '200'],
  [
    'a batch of everything but objects',
    batch('null', '[]', '"x"', '7', 'true'),
    '200 rejected not_an_object,not_an_object,not_an_object,not_an_object,not_an_object',
  ],
  ['a batch in a batch', batch(`{"batch":[${aCall('m1')}]}`), '200 rejected unknown_type'],
  ['a batch sent as one call', track(`{"batch":[${aCall('m1')}]}`), '400 no_user_anon_id'],
  [
    'bad calls first and last',
    batch('{}', aCall('m1'), aCall('m2'), '{"type":"track","userId":"u"}'),
    '200 rejected unknown_type,event_not_defined',
    ['m1', 'm2'],
  ],
  [
    'a deletion with the public key',
    batch('{"type":"delete","userId":"u1","messageId":"m1"}', aCall('m2')),
    '200 rejected unknown_type',
    ['m2'],
  ],
]

const ids: readonly Row[] = [
  ...['{}', '[]', '["u1"]', 'true', 'false'].map(
    (value): Row => [
      `a user id that is ${value}`,
      track(`{"userId":${value},"anonymousId":"a","event":"e"}`),
      '400 id_not_string',
    ],
  ),
  [
    'no id but null and empty ones',
    track('{"userId":null,"anonymousId":"","event":"e"}'),
    '400 no_user_anon_id',
  ],
  [
    'ids that are 0, -0 and 1e21',
    track('{"userId":0,"anonymousId":-0,"groupId":1e21,"event":"e","messageId":"m1"}'),
    '200',
    ['m1'],
  ],
  [
    'an id of 513 characters',
    track(`{"userId":"${'u'.repeat(513)}","event":"e"}`),
    '400 id_too_long',
  ],
  ['a message id of 101 characters', track(aCall('m'.repeat(101))), '400 message_id_too_long'],
  ['a message id of 100 characters', track(aCall('m'.repeat(100))), '200', ['m'.repeat(100)]],
  ...['{}', '[]', '7', 'true'].map(
    (value): Row => [
      `a message id that is ${value}`,
      track(`{"userId":"u1","event":"e","messageId":${value}}`),
      '400 message_id_not_string',
    ],
  ),
  [
    'properties, traits and context of every other type',
    batch(
      ...['"x"', '7', 'true', '[1]'].map((value) => aCall('m1', `,"properties":${value}`)),
      aCall('m2', ',"traits":"x"'),
      aCall('m3', ',"context":[7]'),
    ),

    '200 rejected properties_not_object,properties_not_object,properties_not_object,properties_not_object,traits_not_object,context_not_object',
  ],
  [
    'a user id that is SQL',
    track(`{"userId":"'; drop table users; --","event":"e","messageId":"m1"}`),
    '200',
    ['m1'],
  ],
  [
    'a user id of control characters and right-to-left marks',
    track('{"userId":"\\r\\n\\u001b[31m\\u202e","event":"e","messageId":"m1"}'),
    '200',
    ['m1'],
  ],
]

describe('depth:', () => testHostile(hostile, depths))
describe('keys:', () => testHostile(hostile, keys))
describe('numbers:', () => testHostile(hostile, numbers))
describe('sizes:', () => testHostile(hostile, sizes))
describe('batches:', () => testHostile(hostile, batches))
describe('ids and fields:', () => testHostile(hostile, ids))

import { expect, test } from 'vitest'
import { clean } from '../../src/domain/json.ts'
import type { Flag } from '../../src/domain/rejection.ts'

const cleaned = (text: string, depthMax = 64) => {
  const flags: Flag[] = []
  const result = clean(JSON.parse(text), { depthMax, flag: (flag) => flags.push(flag) })
  return { text: 'value' in result ? JSON.stringify(result.value) : result.rejected, flags }
}

test.each<[string, string, string, Flag[]]>([
  ['clean values stay', '{"a":[1,"é😀",null,true]}', '{"a":[1,"é😀",null,true]}', []],
  [
    '__proto__ keys are stripped at every depth',
    '{"__proto__":{"a":1},"b":[{"__proto__":1,"c":2}]}',
    '{"b":[{"c":2}]}',
    ['proto_key_stripped', 'proto_key_stripped'],
  ],
  [
    'an escaped __proto__ key is stripped',
    '{"\\u005f_proto__":1,"b":2}',
    '{"b":2}',
    ['proto_key_stripped'],
  ],
  [
    'constructor and prototype keys are data',
    '{"constructor":1,"prototype":{"x":2}}',
    '{"constructor":1,"prototype":{"x":2}}',
    [],
  ],
  ['lone surrogates are replaced', '{"a":"x\\ud800y"}', '{"a":"x\ufffdy"}', ['surrogate_replaced']],
  ['NUL is replaced', '{"a":"x\\u0000y"}', '{"a":"x\ufffdy"}', ['nul_replaced']],
  [
    'keys are cleaned in place',
    '{"a":1,"x\\u0000":2,"b":3}',
    '{"a":1,"x\ufffd":2,"b":3}',
    ['nul_replaced'],
  ],
  [
    'integers beyond 2^53 become doubles',
    '[9007199254740993]',
    '[9007199254740992]',
    ['integer_rounded'],
  ],
  ['2^53 - 1 is exact', '[9007199254740991]', '[9007199254740991]', []],
  ['numbers that overflow are refused', '{"a":[1e400]}', 'number_out_of_range', []],
  ['negative overflow is refused', '-1e999', 'number_out_of_range', []],
])('%s', (_name, ...[text, result, flags]) => {
  expect(cleaned(text)).toEqual({ text: result, flags })
})

test('stripping __proto__ changes no prototype', () => {
  const value = JSON.parse('{"__proto__":{"polluted":true}}')
  clean(value, { depthMax: 64, flag: () => undefined })
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
})

test('depth 64 is kept and depth 65 refused', () => {
  const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
  expect(cleaned(nested(64)).text).toBe(nested(64))
  expect(cleaned(nested(65)).text).toBe('too_deep')
  expect(cleaned(nested(200_000)).text).toBe('too_deep')
})

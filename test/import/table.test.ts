import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/domain/message.ts'
import { headerOf } from '../../src/import/header.ts'
import { compileMapping } from '../../src/import/mapping.ts'
import { readTable } from '../../src/import/table.ts'

const columns = ['customer_id', 'date', 'cds', 'value']
const mapping = {
  type: 'track',
  constants: { event: 'Order Completed', 'properties.currency': 'USD' },
  columns: {
    customer_id: 'userId',
    date: 'timestamp',
    cds: { to: 'properties.cds', type: 'integer' },
    value: { to: 'properties.revenue', type: 'number' },
  },
} satisfies JsonObject

const read = (text: string, over: Partial<Parameters<typeof readTable>[1]> = {}) => [
  ...readTable(Buffer.from(text), {
    firstLine: 1,
    isFirst: true,
    format: 'csv',
    mapping,
    columns,
    ...over,
  }),
]

describe('a table', () => {
  test('becomes calls by its mapping, each with its line', () => {
    const text =
      'customer_id,date,cds,value\r\n1,1997-01-01,1,11.77\r\n\r\n"2",1997-01-12T03:04:05Z,5,\n'
    expect(read(text)).toEqual([
      {
        line: 2,
        index: 0,
        call: {
          type: 'track',
          userId: '1',
          event: 'Order Completed',
          timestamp: '1997-01-01T00:00:00.000Z',
          properties: { currency: 'USD', cds: 1, revenue: 11.77 },
        },
      },
      {
        line: 4,
        index: 0,
        call: {
          type: 'track',
          userId: '2',
          event: 'Order Completed',
          timestamp: '1997-01-12T03:04:05.000Z',
          properties: { currency: 'USD', cds: 5 },
        },
      },
    ])
  })

  test('says of each row why it is none, and never what it holds', () => {
    const text =
      '1,1997-01-01,many,2\n1,1997-01-01\n1,31.12.1997,1,2\n"1\n2",1997-01-01,1,2\n3,0,1,x\n'
    expect(read(text, { isFirst: false, firstLine: 7 })).toEqual([
      {
        line: 7,
        index: 0,
        code: 'value_invalid',
        reason: 'the value for properties.cds, in column 3, is not a whole number',
      },
      {
        line: 8,
        index: 0,
        code: 'row_invalid',
        reason: 'the row has 2 values, and there are 4 columns',
      },
      expect.objectContaining({ line: 9, code: 'value_invalid' }),
      expect.objectContaining({ line: 10, call: expect.objectContaining({ userId: '1\n2' }) }),
      expect.objectContaining({ line: 12, code: 'value_invalid' }),
    ])
  })

  test('loses one row, and not its neighbours, to a quote that is never closed', () => {
    const text = '1,1997-01-01,1,2\n2,"1997-01-01,1,2\n3,1997-01-01,1,2\n'
    const lines = read(text, { isFirst: false }).map((record) =>
      'call' in record ? record.line : `${record.line} ${record.code}: ${record.reason}`,
    )
    expect(lines).toEqual([1, '2 row_invalid: a quote is not closed', 3])
  })

  test('read one by one, takes a last row with a line break and no newline after it', () => {
    const text = '"""3""",1997-01-01,1,2\n"4\n5",1997-01-01,1,2'
    expect(read(text, { isFirst: false })).toMatchObject([
      { line: 1, call: { userId: '"3"' } },
      { line: 2, call: { userId: '4\n5' } },
    ])
  })

  test('rejects a value that goes on after its closing quote, and takes quotes that are meant', () => {
    const rows = ['"w3"x,1997-01-01,1,2', 'w"2,1997-01-01,1,2', '"""w""",1997-01-01,1,2']
    const text = `${[...rows, '5,1997-01-01,1,"2" ', '6,1997-01-01,1,"2"'].join('\r\n')}\r\n`
    expect(read(text, { isFirst: false })).toMatchObject([
      { line: 1, code: 'row_invalid', reason: 'a value goes on after its closing quote' },
      { line: 2, call: { userId: 'w"2' } },
      { line: 3, call: { userId: '"w"' } },
      { line: 4, code: 'row_invalid' },
      { line: 5, call: { userId: '6' } },
    ])
  })

  test.each([
    ['true', 'boolean', true],
    ['No', 'boolean', false],
    ['-1.5e3', 'number', -1500],
    ['007', 'string', '007'],
    ['{"a":[1]}', 'json', { a: [1] }],
    ['868000000', 'seconds', '1997-07-04T07:06:40.000Z'],
    ['868000000000', 'milliseconds', '1997-07-04T07:06:40.000Z'],
    ['868000000', 'time', '1997-07-04T07:06:40.000Z'],
  ])('reads "%s" as %s', (text, type, value) => {
    const own = { type: 'track', columns: { id: 'userId', v: { to: 'properties.v', type } } }
    const [record] = read(`u\t${text}\n`, {
      format: 'tsv',
      isFirst: false,
      mapping: own,
      columns: ['id', 'v'],
    })
    expect(record).toMatchObject({ call: { properties: { v: value } } })
  })

  test('begins with a header that may have a byte order mark, quotes and line breaks', () => {
    const start = Buffer.from('\ufeffid,"a ""b""\nc"\n1,2\n')
    expect(headerOf(start, ',', false)).toEqual(['id', 'a "b"\nc'])
    expect(headerOf(start.subarray(0, 14), ',', false)).toBeNull()
    expect(headerOf(Buffer.from('id,b'), ',', true)).toEqual(['id', 'b'])
  })
})

describe('a mapping', () => {
  const problems = (given: unknown) => {
    const compiled = compileMapping(given, columns)
    return 'problems' in compiled
      ? compiled.problems.map(({ path, message }) => `${path}: ${message}`)
      : []
  }

  test('that is right has no problems', () => expect(problems(mapping)).toEqual([]))

  test('of a table that another character divides is told so', () => {
    const compiled = compileMapping(mapping, ['customer_id;date;cds;value'])
    expect('problems' in compiled && compiled.problems[0]?.message).toBe(
      'the file has no column "customer_id"; it has "customer_id;date;cds;value". If they are divided by ";", say in the mapping: delimiter: ";"',
    )
  })

  test.each([
    [
      { ...mapping, columns: { ...mapping.columns, custmer: 'userId' } },
      '/columns/custmer: the file has no column "custmer"; it has "customer_id", "date", "cds", "value"',
    ],
    [
      { ...mapping, type: 'buy' },
      '/type: "type" is one of identify, track, page, screen, group, alias',
    ],
    [{ ...mapping, type: undefined }, '/type: say the "type" of the calls, or map a column to it'],
    [
      { ...mapping, header: true },
      '/header: "header" is none of columns, constants, delimiter, type',
    ],
    [
      { ...mapping, delimiter: '||' },
      '/delimiter: a delimiter is one ASCII character, and no quote',
    ],
    [
      { ...mapping, columns: { ...mapping.columns, cds: { to: 'properties.cds', type: 'int' } } },
      '/columns/cds: "type" is one of string, number, integer, boolean, json, time, seconds, milliseconds',
    ],
    [
      { ...mapping, columns: { ...mapping.columns, cds: 'cds' } },
      '/columns/cds: "cds" is no place in a call: use type, userId,',
    ],
    [
      { ...mapping, columns: { ...mapping.columns, cds: 'userId' } },
      '/columns: "userId" is said twice',
    ],
    [
      { ...mapping, columns: { ...mapping.columns, cds: 'properties.revenue.net' } },
      '/columns: "properties.revenue" cannot hold "properties.revenue.net" and a value too',
    ],
    [
      { ...mapping, columns: { date: 'timestamp' } },
      '/columns: map a column to "userId" or "anonymousId"',
    ],
    ['nonsense', ': a mapping is an object with "type" and "columns"'],
  ])('%j says which column is wrong and what was expected', (given, message) => {
    const told = problems(JSON.parse(JSON.stringify(given)))
    expect(
      told.some((one) => one.startsWith(message)),
      told.join('\n'),
    ).toBe(true)
  })
})

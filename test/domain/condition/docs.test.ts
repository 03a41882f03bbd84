// Every example of docs/conditions.md is read as the page says it is.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { operators } from '../../../src/domain/condition/comparison.ts'
import { normalCondition, normalMeasure } from '../../../src/domain/condition/normal.ts'
import { readConditionText, readMeasureText } from '../../../src/domain/condition/text/read.ts'

const page = readFileSync(new URL('../../../docs/conditions.md', import.meta.url), 'utf8')

const blocks = [...page.matchAll(/^```(json|text) (condition|measure)\n(.*?)^```$/gms)].map(
  ([, form = '', kind = '', text = '']) => ({ form, kind, text }),
)

const read = (kind: string, text: string) =>
  kind === 'condition' ? readConditionText(text) : readMeasureText(text)

test('the examples in text are read, and say what the JSON before them says', () => {
  expect(blocks.length).toBeGreaterThanOrEqual(9)
  const pairs = blocks.flatMap((block, at) => {
    const before = blocks[at - 1]
    return block.form === 'text' && before?.form === 'json' ? [{ block, before }] : []
  })
  expect(pairs.length).toBe(blocks.filter(({ form }) => form === 'json').length)
  for (const { block, before } of pairs) {
    const json = JSON.parse(before.text)
    expect(read(block.kind, block.text)).toEqual({
      ok: true,
      json: block.kind === 'condition' ? normalCondition(json) : normalMeasure(json),
    })
  }
  for (const { kind, text } of blocks.filter(({ form }) => form === 'text'))
    expect(read(kind, text)).toMatchObject({ ok: true })
})

test('the page names every operator', () => {
  for (const op of operators) expect(page).toContain(`\`${op}\``)
})

test('the problem shown is the one that is reported', () => {
  const [, text = '', mark = '', message = ''] =
    /^```\n(event.*)\n( *)\^ (expected.*)\n```$/m.exec(page) ?? []
  expect(readConditionText(text)).toEqual({
    ok: false,
    problems: [{ line: 1, column: mark.length + 1, message }],
  })
})

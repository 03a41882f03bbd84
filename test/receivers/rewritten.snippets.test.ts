// The table on the page for receivers that tells what becomes of a body parsed and written again, held against each language.
import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ownFolder } from '../support/folder.ts'
import { missingFor } from './programs.ts'

const body = '{"slash":"a/b","accent":"é","tag":"<b>","none":{},"small":1e-7}'

const go = `package main
import ("encoding/json"; "os")
func main() {
	var body any
	if err := json.Unmarshal([]byte(os.Args[1]), &body); err != nil { panic(err) }
	if err := json.NewEncoder(os.Stdout).Encode(body); err != nil { panic(err) }
}
`

/** What parses its last argument and writes it again, by the name of its row. */
const writers: readonly (readonly [row: string, command: string, args: readonly string[]])[] = [
  [
    'JavaScript',
    'node',
    ['-e', 'process.stdout.write(JSON.stringify(JSON.parse(process.argv[1])))'],
  ],
  ['Python', 'python3', ['-c', 'import json, sys; print(json.dumps(json.loads(sys.argv[1])))']],
  ['PHP', 'php', ['-r', 'echo json_encode(json_decode($argv[1], true));']],
  ['Go', 'go', ['run', 'rewrite.go']],
  ['Ruby', 'ruby', ['-rjson', '-e', 'print JSON.generate(JSON.parse(ARGV[0]))']],
]

const folder = await ownFolder('rewritten')
await writeFile(join(folder, 'rewrite.go'), go)

const page = await readFile(new URL('../../docs/receivers.md', import.meta.url), 'utf8')

const cellsOf = (row: string): readonly string[] => {
  const line = page
    .split('\n')
    .find((each) => each.startsWith(`| ${row} \`JSON.`) || each.startsWith(`| ${row} \`json`))
  return (line ?? '')
    .split('|')
    .slice(2, 7)
    .map((cell) => cell.trim().replaceAll('`', ''))
}

/** In CI what is missing fails; elsewhere it is skipped, and said so. */
const isSkipped = (command: string): boolean => {
  const missing = process.env['CI'] === 'true' ? null : missingFor(command)
  if (missing !== null) process.stderr.write(`NO ${missing}: a row of the page is not tested\n`)
  return missing !== null
}

for (const [row, command, args] of writers)
  test.skipIf(isSkipped(command))(`${row} writes again what the page says`, () => {
    const env = { ...process.env, LANG: 'C.UTF-8' }
    const options = { cwd: folder, env, encoding: 'utf8', timeout: 240_000 } as const
    const written = execFileSync(command, [...args, body], options)
    const found = ['slash', 'accent', 'tag', 'none', 'small'].map(
      (key) => new RegExp(`"${key}": ?("[^"]*"|[^,}]+}?)`).exec(written)?.[1],
    )
    expect(found.map((text) => text?.replace(/(?<=\d)}$/, ''))).toEqual(cellsOf(row))
  })

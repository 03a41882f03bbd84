// docs/php.md: its programs run as they are printed, and its table of exit codes is the one send.php has.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { freshId } from '../clients/line.ts'
import { until } from '../support/until.ts'
import { lineOfFile, writeKey } from './line.ts'
import { expectQuiet, pagePath, phpTest, runPage, runPhp, tempFolder } from './page.ts'

const held = lineOfFile()
const root = new URL('../../', import.meta.url)
const textOf = (path: string) => readFile(new URL(path, root), 'utf8')

const programs = async (): Promise<readonly string[]> =>
  [...(await textOf('docs/php.md')).matchAll(/```php\n(.*?)```/gs)].map(([, text]) => text ?? '')

const arrived = (userId: string) => held.line.bodiesOf(userId).map(({ type }) => type)

phpTest('the quick start sends what it says', async () => {
  const [text = ''] = await programs()
  const userId = freshId('user')
  const program = text
    .replaceAll('/path/to/', new URL('.', root).pathname)
    .replaceAll('WRITE_KEY', writeKey)
    .replaceAll('https://events.example.com', held.line.collectUrl)
    .replaceAll('u1', userId)
  const script = join(await tempFolder(), 'quick-start.php')
  await writeFile(script, `<?php\n${program}`)
  const ran = await runPhp({ script })
  expectQuiet(ran)
  expect(ran.err).toBe('')
  await until(() => arrived(userId).length === 2, 'both calls arrive')
  expect(arrived(userId)).toEqual(['identify', 'track'])
})

phpTest('every program of it is PHP', async () => {
  const found = await programs()
  expect(found.length).toBeGreaterThan(5)
  for (const text of found) {
    const script = join(await tempFolder(), 'program.php')
    await writeFile(script, `<?php\n${text}`)
    expectQuiet(await runPhp({ script, flags: ['-l'] }))
  }
})

phpTest('a page of the reference library runs on the shim', async () => {
  const userId = freshId('user')
  const options = { consumer: 'lib_curl', host: held.line.collectUrl }
  await runPage({ writeKey, options, calls: [], userId }, { script: pagePath('shim') })
  await until(() => arrived(userId).length === 2, 'both calls arrive')
  expect(held.line.bodiesOf(userId).map(({ event }) => event)).toEqual(['Old Name', 'Old Instance'])
})

phpTest('it tells every exit code, and no other', async () => {
  const codes = [
    ...(await textOf('clients/php/src/Send/ExitCode.php')).matchAll(/case \w+ = (\d+);/g),
  ]
  const rows = [...(await textOf('docs/php.md')).matchAll(/^\| (\d+) \|/gm)]
  expect(codes.length).toBeGreaterThan(5)
  expect(rows.map(([, code]) => code)).toEqual(codes.map(([, code]) => code))
})

import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { ownFolder, removeFolders } from './folder.ts'

const paths: string[] = [await ownFolder('at-the-top')]
beforeAll(async () => {
  paths.push(await ownFolder('in-a-hook'))
})

test('folders are removed with what is in them, wherever they were asked for', async () => {
  paths.push(await ownFolder('in-a-test'))
  for (const path of paths) await writeFile(join(path, 'some'), 'thing')
  await removeFolders()
  expect(paths.length).toBe(3)
  expect(paths.filter((path) => existsSync(path))).toEqual([])
})

// What Node is started with by `npm start`.
import { readFileSync } from 'node:fs'

type Package = { readonly scripts: { readonly start: string } }

const { scripts } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as Package

export const startFlags: readonly string[] = scripts.start
  .split(' ')
  .filter((word) => word.startsWith('--'))

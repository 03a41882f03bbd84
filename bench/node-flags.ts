// What Node is started with in a bench: as the product is, and whatever else is to be tried.
import { readFileSync } from 'node:fs'

type Package = { readonly scripts: { readonly start: string } }

const { scripts } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as Package

export const nodeFlags: readonly string[] = [
  ...scripts.start.split(' ').filter((word) => word.startsWith('--')),
  ...(process.env['BENCH_FLAGS']?.split(' ') ?? []),
]

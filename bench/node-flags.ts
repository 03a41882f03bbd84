// What Node is started with in a bench: as the product is, and whatever else is to be tried.
import { startFlags } from '../test/support/start-flags.ts'

export const nodeFlags: readonly string[] = [
  ...startFlags,
  ...(process.env['BENCH_FLAGS']?.split(' ') ?? []),
]

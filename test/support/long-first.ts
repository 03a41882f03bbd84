// Long files first: vitest starts the largest, and those that wait for whole processes are often the shortest.
// Started last they would run by themselves while the other workers have nothing left to do.

/** Those that take longest, longest first: their seconds on a quiet machine fall from 190 to 9. */
export const longest: readonly string[] = [
  'test/acceptance/purchases.acceptance.test.ts',
  'test/acceptance/purchases.kafka.acceptance.test.ts',
  'test/chaos/kill.chaos.test.ts',
  'test/erase/kill.system.test.ts',
  'test/e2e/smoke.system.test.ts',
  'test/property/audience.system.test.ts',
  'test/acceptance/purchases.system.test.ts',
  'test/replay/kill.kafka.test.ts',
  'test/archive/crash.system.test.ts',
  'test/import/memory.system.test.ts',
  'test/contract/log.kafka.traps.test.ts',
  'test/sync/accounts.system.test.ts',
  'test/rebuild/kill.system.test.ts',
  'test/import/kill.system.test.ts',
  'test/archive/erasing.system.test.ts',
  'test/sync/crash.system.test.ts',
  'test/erase/crash.system.test.ts',
  'test/e2e/duplicates.system.test.ts',
  'test/e2e/crash.system.test.ts',
  'test/archive/process.system.test.ts',
  'test/deliver/urls.test.ts',
  'test/deliver/order.test.ts',
  'test/deliver/deliver.test.ts',
  'test/collect/hostile-pace.test.ts',
  'test/replay/kill.system.test.ts',
  'test/deliver/recover.test.ts',
  'test/rebuild/crash.system.test.ts',
  'test/rebuild/purchases.system.test.ts',
  'test/property/audience-relabelled.test.ts',
  'test/property/documented-steps.test.ts',
]

/** The named ones in their order, then the others in theirs. */
export const inOrder = <T>(files: readonly T[], pathOf: (file: T) => string): T[] => {
  const places = new Map(longest.map((path, place) => [path, place]))
  const placeOf = (file: T) => places.get(pathOf(file)) ?? longest.length
  return files.toSorted((a, b) => placeOf(a) - placeOf(b))
}

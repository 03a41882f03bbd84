import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { LongFirst } from './test/support/sequencer.ts'

/** What every project has: one seed for all random data of the run, which every failure says. */
const seeded = {
  setupFiles: ['test/support/seed-setup.ts', 'test/support/folder-setup.ts'],
  env: {
    SEED: process.env['SEED'] ?? String(Date.now() % 1_000_000),
    // For the processes that tests start: reading all of the source takes each of them a second longer.
    NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/millrace-test'),
  },
}

const shared = {
  ...seeded,
  globalSetup: ['test/support/global-setup.ts'],
  // Far beyond what a busy machine takes: only what hangs gets there.
  testTimeout: 180_000,
  hookTimeout: 180_000,
}

const kafka = 'test/**/*.kafka*.test.ts'
const acceptance = 'test/**/*.acceptance.test.ts'
const system = 'test/**/*.system.test.ts'
const clients = 'test/**/*.clients.test.ts'
const receivers = 'test/**/*.receivers.test.ts'
const snippets = 'test/**/*.snippets.test.ts'
const php = 'test/**/*.php.test.ts'
const chaos = 'test/**/*.chaos.test.ts'
/** Of chaos, what measures how long healthy receivers wait on a machine that does nothing else. */
const measured = 'test/chaos/recovery.chaos.test.ts'
const fuzz = 'test/**/*.fuzz.test.ts'
const s3 = 'test/**/*.s3.test.ts'
/** What has a suite of its own. */
const suites = [kafka, acceptance, system, clients, receivers, snippets, php, chaos, fuzz, s3]
/** Packages that the suites of clients and receivers install for themselves. */
const packages = '**/node_modules/**'

export default defineConfig({
  test: {
    // One more than the cores of a small machine: tests wait now and then.
    maxWorkers: 3,
    // Servers that a set-up started are stopped, and their folders removed, on a busy machine too.
    teardownTimeout: 120_000,
    sequence: { sequencer: LongFirst },
    projects: [
      // What runs anywhere: `npm test`.
      {
        test: {
          ...shared,
          name: 'here',
          include: ['test/**/*.test.ts'],
          exclude: [...suites, packages],
        },
      },
      // Whole processes: kills, restarts, takeovers and servers that are waited for: `npm run test:system`.
      {
        test: { ...shared, name: 'system', include: [system], exclude: [packages] },
      },
      // What needs a real broker and schema registry: `npm run test:kafka`.
      {
        test: {
          ...shared,
          name: 'kafka',
          include: [kafka],
          exclude: [acceptance, packages],
          globalSetup: ['test/support/kafka-setup.ts'],
        },
      },
      // Minutes of real input and kills: `npm run test:acceptance`.
      {
        test: {
          ...seeded,
          name: 'acceptance',
          include: [acceptance],
          exclude: [packages],
          globalSetup: shared.globalSetup,
          testTimeout: 1_800_000,
        },
      },
      // Published clients in their own runtimes, and a browser: `npm run test:clients`.
      {
        test: {
          ...seeded,
          name: 'clients',
          include: [clients],
          exclude: [packages],
          globalSetup: ['test/clients/setup.ts'],
          testTimeout: 420_000,
          hookTimeout: 60_000,
        },
      },
      // Faults of receivers, kills and restarts, most of which wait: `npm run chaos`.
      {
        test: {
          ...shared,
          name: 'chaos',
          include: [chaos],
          exclude: [measured, packages],
          testTimeout: 1_800_000,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...shared,
          name: 'chaos-alone',
          include: [measured],
          exclude: [packages],
          fileParallelism: false,
          testTimeout: 1_800_000,
        },
      },
      // Goes on until the first difference: `npm run fuzz -- audiences`.
      {
        test: {
          ...shared,
          name: 'fuzz',
          include: [fuzz],
          exclude: [packages],
          testTimeout: 2_147_483_647,
        },
      },
      // The archive on a real S3 server, which its set-up builds with Go: `npm run test:s3`.
      {
        test: {
          ...shared,
          name: 's3',
          globalSetup: ['test/support/s3-gateway.ts'],
          include: [s3],
          exclude: [packages],
        },
      },
      // What receivers check our requests with: `npm run test:receivers`.
      {
        test: {
          ...shared,
          name: 'receivers',
          include: [receivers],
          exclude: [packages],
          globalSetup: [...shared.globalSetup, 'test/receivers/setup.ts'],
        },
      },
      // The programs of docs/receivers.md, each in its own runtime: `npm run test:snippets`.
      {
        test: {
          ...shared,
          name: 'snippets',
          include: [snippets],
          exclude: [packages],
          testTimeout: 300_000,
        },
      },
      // Pages of the PHP library and its send.php: `npm run test:php`.
      {
        test: {
          ...seeded,
          name: 'php',
          include: [php],
          exclude: [packages],
          globalSetup: ['test/php/setup.ts'],
          testTimeout: 180_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
})

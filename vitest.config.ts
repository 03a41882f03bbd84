import { defineConfig } from 'vitest/config'

const shared = {
  globalSetup: ['test/support/global-setup.ts'],
  testTimeout: 60_000,
  hookTimeout: 60_000,
}

const kafka = 'test/**/*.kafka*.test.ts'
const acceptance = 'test/**/*.acceptance.test.ts'

export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      // What runs anywhere: `npm test`.
      {
        test: {
          ...shared,
          name: 'here',
          include: ['test/**/*.test.ts'],
          exclude: [kafka, acceptance],
        },
      },
      // What needs a real broker and schema registry: `npm run test:kafka`.
      {
        test: { ...shared, name: 'kafka', include: [kafka], exclude: [acceptance] },
      },
      // Minutes of real input and kills: `npm run test:acceptance`.
      {
        test: { name: 'acceptance', include: [acceptance], testTimeout: 1_800_000 },
      },
    ],
  },
})

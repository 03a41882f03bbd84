// Before each test file, in every project: fast-check takes the seed of the run, and what fails says it.
import fc from 'fast-check'
import { beforeEach } from 'vitest'
import { seed } from './seed.ts'

fc.configureGlobal({ seed })

beforeEach(({ onTestFailed, task }) => {
  onTestFailed(() => {
    process.stderr.write(`failed with SEED=${seed}: ${task.name}\n`)
  })
})

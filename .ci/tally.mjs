// Reads a vitest JSON report and prints `passed failed`; what was skipped or did not run counts as failed.
import { readFileSync } from 'node:fs'

const [report, status] = process.argv.slice(2)
const { numPassedTests, numTotalTests, testResults } = JSON.parse(readFileSync(report, 'utf8'))
const brokenFiles = testResults.filter(
  ({ status: file, assertionResults }) => file === 'failed' && assertionResults.length === 0,
).length
const failed = numTotalTests - numPassedTests + brokenFiles
process.stdout.write(`${numPassedTests} ${failed === 0 && status !== '0' ? 1 : failed}\n`)

// Reads a vitest JSON report and prints `passed failed` first, then a line for each test that failed, with its
// message: what is said at the end of a long run. What was skipped or did not run counts as failed.
import { readFileSync } from 'node:fs'

const [report, status] = process.argv.slice(2)
const { numPassedTests, numTotalTests, testResults } = JSON.parse(readFileSync(report, 'utf8'))
const isBroken = ({ status: file, assertionResults }) =>
  file === 'failed' && assertionResults.length === 0
const failed = numTotalTests - numPassedTests + testResults.filter(isBroken).length
const lines = testResults.flatMap((file) =>
  isBroken(file)
    ? [`${file.name}: ${firstLine(file.message)}`]
    : file.assertionResults
        .filter(({ status }) => status !== 'passed')
        .map(
          (one) =>
            `${file.name} > ${one.fullName}: ${one.status} ${firstLine(one.failureMessages?.[0])}`,
        ),
)
process.stdout.write(`${numPassedTests} ${failed === 0 && status !== '0' ? 1 : failed}\n`)
for (const line of lines) process.stdout.write(`${line}\n`)

function firstLine(text = '') {
  return text.split('\n', 1)[0].slice(0, 300)
}

// Reads a vitest JSON report and prints `passed failed` first, then a line for each test that failed, with its
// message: what is said at the end of a long run. What was skipped or did not run counts as failed.
// With --files first: the test files with a failed one, a line each.
import { existsSync, readFileSync } from 'node:fs'

const isOfFiles = process.argv[2] === '--files'
const [report, status] = process.argv.slice(isOfFiles ? 3 : 2)
if (isOfFiles && !existsSync(report)) process.exit(0)
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
if (isOfFiles) {
  for (const { name, status: file } of testResults)
    if (file === 'failed') process.stdout.write(`${name.slice(name.lastIndexOf('/test/') + 1)}\n`)
} else {
  process.stdout.write(`${numPassedTests} ${failed === 0 && status !== '0' ? 1 : failed}\n`)
  for (const line of lines) process.stdout.write(`${line}\n`)
}

function firstLine(text = '') {
  return text.split('\n', 1)[0].slice(0, 300)
}

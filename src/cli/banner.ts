// What `millrace serve` prints once it runs: where to send calls, and a line that sends one.
import manifest from '../../package.json' with { type: 'json' }
import type { Millrace } from '../serve.ts'

export const bannerOf = ({ collectUrl, adminUrl, firstStart }: Millrace): readonly string[] => {
  const { writeKey, token, created } = firstStart
  const lines = ['', `Millrace ${manifest.version} is running.`, '']
  if (collectUrl !== null) lines.push(`  Collection   ${collectUrl}`)
  if (collectUrl !== null && writeKey !== null) lines.push(`  Write key    ${writeKey}`)
  if (created) lines.push(`  Secret key   ${created.secretKey}   (shown this once)`)
  if (adminUrl !== null) lines.push(`  Admin        ${adminUrl}`)
  if (adminUrl !== null) lines.push(`  Admin token  ${token ?? 'as printed at the first start'}`)
  if (collectUrl !== null && writeKey !== null)
    lines.push('', 'Send a call:', '', `  ${curlOf(collectUrl, writeKey)}`)
  return [...lines, '']
}

const example = '{"userId":"u1","event":"Order Completed","properties":{"price":19.5}}'

export const curlOf = (collectUrl: string, writeKey: string): string =>
  `curl -sS -u ${writeKey}: -H 'Content-Type: application/json' -d '${example}' ${collectUrl}/v1/track`

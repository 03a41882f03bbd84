// What `millrace serve` prints once it runs: where to send calls, and a line that sends one.
import manifest from '../../package.json' with { type: 'json' }
import type { Config } from '../config.ts'
import type { Millrace } from '../serve.ts'

export const bannerOf = (millrace: Millrace, config: Config): readonly string[] => {
  const { collectUrl, adminUrl, firstStart } = millrace
  const { writeKey, created } = firstStart
  const lines = ['', `Millrace ${manifest.version} is running.`, '']
  if (collectUrl !== null) lines.push(`  Collection   ${collectUrl}`)
  if (collectUrl !== null && writeKey !== null) lines.push(`  Write key    ${writeKey}`)
  if (created) lines.push(`  Secret key   ${created.secretKey}   (shown this once)`)
  if (adminUrl !== null) lines.push(`  Admin        ${adminUrl}`)
  const token = tokenOf(millrace, config)
  if (token !== null) lines.push(`  Admin token  ${token}`)
  if (collectUrl !== null && writeKey !== null)
    lines.push('', 'Send a call:', '', `  ${curlOf(collectUrl, writeKey)}`)
  return [...lines, '']
}

/** A token made now is shown by whichever process made it, also by one without the admin role. */
const tokenOf = ({ adminUrl, firstStart }: Millrace, config: Config): string | null => {
  if (config.adminToken !== null) return adminUrl === null ? null : 'that of MILLRACE_ADMIN_TOKEN'
  if (firstStart.token !== null) return `${firstStart.token}   (shown this once)`
  return adminUrl === null ? null : 'as printed at the first start'
}

const example = '{"userId":"u1","event":"Order Completed","properties":{"price":19.5}}'

const curlOf = (collectUrl: string, writeKey: string): string =>
  `curl -sS -u ${writeKey}: -H 'Content-Type: application/json' -d '${example}' ${collectUrl}/v1/track`

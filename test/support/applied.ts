// Configures a running Millrace over its admin API, and waits until it takes effect.
import { expect } from 'vitest'
import { until } from './until.ts'

export const apply = async (
  admin: { readonly adminUrl: string; readonly token: string },
  configuration: unknown,
): Promise<void> => {
  const response = await fetch(`${admin.adminUrl}/admin/v1/apply`, {
    method: 'POST',
    headers: { authorization: `Bearer ${admin.token}`, 'content-type': 'application/json' },
    body: JSON.stringify(configuration),
  })
  expect(response.status, await response.text()).toBe(200)
}

/** Configuration takes effect within seconds; an empty batch tells when without leaving a trace. */
export const acceptsWriteKey = (collectUrl: string, writeKey: string): Promise<void> =>
  until(async () => {
    const response = await fetch(`${collectUrl}/v1/batch`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}` },
      body: '{"batch":[]}',
    })
    await response.text()
    return response.status !== 401
  })

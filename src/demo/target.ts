// The Millrace a demo runs against, seen as its users see it: over the admin API.

export type Target = {
  readonly collectUrl: string
  readonly adminUrl: string
  readonly token: string
}

export const demoWriteKey = 'wk_demo_shop'

export const audienceNames: Readonly<Record<string, string>> = {
  demo_open_carts: 'Demo Open Carts',
  demo_regulars: 'Demo Regulars',
}

const lastMinute = { last: '1m' }

/** Windows of one minute, so that members leave while one watches. */
const configurationOf = (webhookUrl: string, sharedSecret: string) => ({
  workspaces: [
    {
      name: 'demo',
      sources: [{ name: 'demo shop', class: 'server', writeKey: demoWriteKey }],
      destinations: [
        {
          name: 'Demo Webhooks',
          type: 'webhook',
          sources: ['demo shop'],
          sharedSecret,
          webhooks: [{ url: webhookUrl, headers: { 'X-Demo': 'millrace' } }],
        },
      ],
      audiences: [
        {
          name: 'Demo Open Carts',
          destinations: ['Demo Webhooks'],
          syncEvery: '1m',
          where: {
            all: [
              {
                event: { name: 'Product Added', window: lastMinute },
                count: { op: 'gte', value: 1 },
              },
              {
                not: {
                  event: { name: 'Order Completed', window: lastMinute },
                  count: { op: 'gte', value: 1 },
                },
              },
            ],
          },
        },
        {
          name: 'Demo Regulars',
          destinations: ['Demo Webhooks'],
          syncEvery: '1m',
          where: {
            event: { name: 'Order Completed', window: lastMinute },
            count: { op: 'gte', value: 2 },
          },
        },
      ],
    },
  ],
})

export const configure = async (
  target: Target,
  webhook: { readonly url: string; readonly secret: string },
): Promise<void> => {
  await post(target, '/admin/v1/apply', configurationOf(webhook.url, webhook.secret))
}

/** Returns the number of messages the sync decided on. */
export const syncNow = async (target: Target, signal: AbortSignal): Promise<number> => {
  const run = (await post(target, '/admin/v1/sync', {}, signal)) as { emitted: number }
  return run.emitted
}

const post = async (
  target: Target,
  path: string,
  ...rest: [body: unknown, signal?: AbortSignal]
) => {
  const [body, signal] = rest
  const response = await fetch(new URL(path, target.adminUrl), {
    method: 'POST',
    headers: { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: signal ?? AbortSignal.timeout(30_000),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text.slice(0, 500)}`)
  return JSON.parse(text) as unknown
}

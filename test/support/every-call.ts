// What a webhook receives of one call of each kind, as the specification's tables have it.
import { expect } from 'vitest'

export type EveryCall = {
  readonly userId: string
  /** Whom the alias call names. */
  readonly newId: string
  readonly at: string
  /** What an SDK adds to a page's properties. */
  readonly page?: Readonly<Record<string, unknown>>
}

/** A screen call brings it in its context. */
export const device = {
  device: { model: 'Pixel 9', type: 'android' },
  os: { name: 'Android', version: '16' },
  app: { build: '12', name: 'Shop', version: '3.4' },
}

export const everyCall = ({ userId, newId, at, page }: EveryCall) => {
  const head = { version: 1, userId, timestamp: at }
  return {
    identify: { ...head, type: 'identify', traits: { email: 'a@example.org', plan: 'pro' } },
    track: { ...head, type: 'track', event: 'Order Completed', properties: { price: 9.5 } },
    page: {
      ...head,
      type: 'page',
      properties: { url: 'https://example.org/', name: 'Home', ...page },
    },
    screen: {
      ...head,
      type: 'screen',
      name: 'Cart',
      context: expect.objectContaining(device),
    },
    group: { ...head, type: 'group', groupId: 'g1', traits: { 'total seats': 5 } },
    alias: {
      version: 1,
      type: 'alias',
      'Previous ID': userId,
      'User ID': newId,
      timestamp: at,
    },
  }
}

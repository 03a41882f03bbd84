// The lines that the import bench reads: orders of years ago, as a shop would export them.
import type { JsonObject } from '../src/domain/message.ts'

const firstOrder = Date.parse('2020-01-01T00:00:00Z')

export const aPastCall = (n: number): JsonObject => ({
  type: 'track',
  userId: `user-${n % 50_000}`,
  messageId: `order-${n}`,
  event: 'Order Completed',
  timestamp: new Date(firstOrder + n * 1_000).toISOString(),
  properties: {
    orderId: `o-${n}`,
    total: (n % 10_000) / 100,
    currency: 'USD',
    products: [
      { id: `p-${n % 997}`, name: 'Blue Shoes', price: 59.9, quantity: 1 },
      { id: `p-${n % 991}`, name: 'Red Socks', price: 4.5, quantity: 3 },
    ],
  },
  context: { app: { name: 'shop', version: '3.4.5' }, locale: 'en-US' },
})

export const linesOf = (from: number, amount: number): Buffer =>
  Buffer.from(
    Array.from({ length: amount }, (_, n) => `${JSON.stringify(aPastCall(from + n))}\n`).join(''),
  )

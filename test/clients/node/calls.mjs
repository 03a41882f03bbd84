// The calls every client makes, in the form that server SDKs for Node take them.

export const device = {
  device: { model: 'Pixel 9', type: 'android' },
  os: { name: 'Android', version: '16' },
  app: { build: '12', name: 'Shop', version: '3.4' },
}

export const everyCall = ({ userId, newId, at }) => {
  const timestamp = new Date(at)
  return [
    { kind: 'identify', userId, traits: { email: 'a@example.org', plan: 'pro' }, timestamp },
    { kind: 'track', userId, event: 'Order Completed', properties: { price: 9.5 }, timestamp },
    { kind: 'page', userId, name: 'Home', properties: { url: 'https://example.org/' }, timestamp },
    { kind: 'screen', userId, name: 'Cart', context: device, timestamp },
    { kind: 'group', userId, groupId: 'g1', traits: { 'total seats': 5 }, timestamp },
    { kind: 'alias', userId: newId, previousId: userId, timestamp },
  ]
}

export const manyCalls = ({ userId, count }) =>
  Array.from({ length: count }, (_, number) => ({
    kind: 'track',
    userId,
    event: 'Counted',
    properties: { number },
  }))

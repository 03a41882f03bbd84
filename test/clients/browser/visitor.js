// What a visitor's page does with the SDK it loaded: runs in the browser.

const device = {
  device: { model: 'Pixel 9', type: 'android' },
  os: { name: 'Android', version: '16' },
  app: { build: '12', name: 'Shop', version: '3.4' },
}

const loadSegment = async (order, errors) => {
  const options = order.strategy
    ? { integrations: { 'Segment.io': { deliveryStrategy: order.strategy } } }
    : {}
  const loaded = globalThis.AnalyticsNext.AnalyticsBrowser.load(
    { writeKey: order.writeKey, cdnURL: order.host },
    options,
  )
  const [analytics] = await loaded
  analytics.on('error', (error) => errors.push(String(error.reason ?? error.code)))
  return analytics
}

/** The published snippet: calls wait in an array until the script is there. */
const loadSnippet = async (order) => {
  const waiting = []
  for (const method of ['track', 'load', 'page', 'identify', 'ready'])
    waiting[method] = (...args) => waiting.push([method, ...args])
  waiting._writeKey = order.writeKey
  waiting._cdn = order.host
  globalThis.analytics = waiting
  waiting.track('Before Load', { visitor: order.userId })
  waiting._loadOptions = {}
  const script = document.createElement('script')
  script.src = '/snippet.js'
  document.head.append(script)
  await new Promise((resolve) => waiting.ready(resolve))
  return globalThis.analytics
}

const everySegmentCall = async (analytics, { userId, newId, at }) => {
  const timestamp = new Date(at)
  const calls = [
    // First, because this SDK writes over an alias's user once it knows one.
    analytics.alias(newId, userId, { timestamp }),
    analytics.identify(userId, { email: 'a@example.org', plan: 'pro' }, { timestamp }),
    analytics.track('Order Completed', { price: 9.5 }, { timestamp }),
    analytics.page('Home', { url: 'https://example.org/' }, { timestamp }),
    analytics.screen('Cart', {}, { timestamp, context: device }),
    analytics.group('g1', { 'total seats': 5 }, { timestamp }),
  ]
  return (await Promise.all(calls)).length
}

const manySegmentCalls = async (analytics, { userId, count }) => {
  await analytics.identify(userId)
  const numbers = Array.from({ length: count }, (_, number) => number)
  await Promise.all(numbers.map((number) => analytics.track('Counted', { number })))
  return count + 1
}

const hide = (hidden) => {
  Object.defineProperty(document, 'visibilityState', {
    configurable: true,
    get: () => (hidden ? 'hidden' : 'visible'),
  })
  document.dispatchEvent(new Event('visibilitychange'))
}

const loadRudder = async (order) => {
  const { RudderAnalytics } = globalThis.rudderanalytics
  const analytics = new RudderAnalytics()
  analytics.load(order.writeKey, order.host, {
    configUrl: order.host,
    useBeacon: order.beacon === true,
    beaconQueueOptions: { flushQueueInterval: 500 },
    queueOptions: { maxItems: 1_000 },
  })
  await new Promise((resolve) => analytics.ready(resolve))
  return analytics
}

const everyRudderCall = (analytics, { userId, newId, at }) => {
  const options = { originalTimestamp: at }
  analytics.identify(userId, { email: 'a@example.org', plan: 'pro' }, options)
  analytics.track('Order Completed', { price: 9.5 }, options)
  analytics.page('Home', { url: 'https://example.org/' }, options)
  analytics.group('g1', { 'total seats': 5 }, options)
  analytics.alias(newId, userId, options)
  return 5
}

const manyRudderCalls = (analytics, { userId, count }) => {
  analytics.identify(userId)
  for (let number = 0; number < count; number += 1) analytics.track('Counted', { number })
  return count + 1
}

globalThis.visit = async (order) => {
  const errors = []
  if (order.page === 'rudder') {
    const analytics = await loadRudder(order)
    const send = order.kind === 'many' ? manyRudderCalls : everyRudderCall
    const sent = send(analytics, order)
    return { sent, errors, anonymousId: analytics.getAnonymousId() }
  }
  if (order.page === 'snippet') {
    const analytics = await loadSnippet(order)
    await analytics.identify(order.userId)
    return { sent: 2, errors, anonymousId: analytics.user().anonymousId() }
  }
  if (order.kind === 'limited') return await limited(order)
  const { tries } = order.isLimited ? await limited(order) : { tries: 0 }
  const analytics = await loadSegment(order, errors)
  if (order.kind === 'load') return { sent: 0, errors }
  const send = order.kind === 'many' ? manySegmentCalls : everySegmentCall
  const sent = await send(analytics, order)
  if (order.leave === 'hide') {
    hide(true)
    // Back again, the SDK sends what it still holds a second time with what is new.
    hide(false)
    await analytics.track('Counted', { number: order.count })
    hide(true)
  }
  return { sent, errors, tries, anonymousId: analytics.user().anonymousId() }
}

/** What a script reads of an answer that asks to wait. */
const limited = async ({ host, writeKey, userId }) => {
  for (let tries = 1; tries <= 500; tries += 1) {
    const response = await fetch(`${host}/v1/t`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`${writeKey}:`)}`, 'content-type': 'text/plain' },
      body: JSON.stringify({ userId, event: 'Limited', properties: { tries } }),
    })
    if (response.status === 429)
      return {
        sent: 0,
        errors: [],
        tries,
        retryAfter: response.headers.get('Retry-After'),
        reset: response.headers.get('X-RateLimit-Reset'),
        answer: await response.json(),
      }
  }
  return { sent: 0, errors: ['never limited'] }
}

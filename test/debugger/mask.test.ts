import { describe, expect, test } from 'vitest'
import { maskCall, maskLimits, shownMessageId } from '../../src/debugger/mask.ts'
import { hiddenId, shown, shownPath } from '../../src/debugger/scrub.ts'
import type { Json } from '../../src/domain/message.ts'

const masked = (call: Json) => maskCall(call).call

describe('a masked call', () => {
  test('tells the name and category of pages and screens, and of other calls their length alone', () => {
    const named = { name: 'Jane Doe', category: 'Smith' }
    for (const type of ['page', 'screen'])
      expect(masked({ type, ...named })).toEqual({ type, ...named })
    for (const type of ['identify', 'track', 'group', 'alias'])
      expect(masked({ type, ...named })).toEqual({ type, name: '…8', category: '…5' })
    expect(masked(named)).toEqual({ name: '…8', category: '…5' })
  })

  test('keeps its shape, its structural fields, its small numbers and its booleans', () => {
    expect(
      masked({
        type: 'track',
        event: 'Order Completed',
        messageId: '0199b1a2-7c1e-7b52-8d3f-1c2d3e4f5a6b',
        userId: 'user-4711',
        anonymousId: '507f191e810c19729de860ea',
        timestamp: '2026-03-01T12:00:00.000Z',
        channel: 'server',
        integrations: { All: false, Webhooks: true },
        properties: {
          total: 99.5,
          isGift: true,
          coupon: null,
          currency: 'EUR',
          path: '/checkout/step-2/jane.doe@example.com',
          products: [{ sku: 'AB-1', price: 12 }],
        },
        traits: { email: 'jane@example.com', firstName: 'Jane', age: 41 },
        context: {
          ip: '203.0.113.7',
          userAgent: 'Mozilla/5.0',
          library: { name: 'analytics-node', version: '3.1.0' },
          app: { name: 'Shop', version: '4.12', build: '88' },
          os: { name: 'iOS', version: '17.2' },
          device: { type: 'ios', id: '7a3c9f', name: 'Jane’s iPhone', manufacturer: 'Apple' },
          page: {
            path: '/users/12345678/orders?token=abc',
            title: 'Orders of Jane',
            url: 'https://shop.example/users/jane',
          },
        },
      }),
    ).toEqual({
      type: 'track',
      event: 'Order Completed',
      messageId: '0199b1a2-7c1e-7b52-8d3f-1c2d3e4f5a6b',
      userId: 'us…9',
      anonymousId: '50…24',
      timestamp: '2026-03-01T12:00:00.000Z',
      channel: 'server',
      integrations: { All: false, Webhooks: true },
      properties: {
        total: 99.5,
        isGift: true,
        coupon: null,
        currency: '…3',
        path: '/checkout/step-2/…',
        products: [{ sku: '…4', price: 12 }],
      },
      traits: { email: '…16', firstName: '…4', age: 41 },
      context: {
        ip: '…11',
        userAgent: '…11',
        library: { name: 'analytics-node', version: '3.1.0' },
        app: { name: 'Shop', version: '4.12', build: '88' },
        os: { name: 'iOS', version: '17.2' },
        device: { type: 'ios', id: '7a…6', name: '…13', manufacturer: '…5' },
        page: { path: '/users/…/orders', title: '…14', url: '…31' },
      },
    })
  })

  test('tells nothing of secrets, not even how long they are', () => {
    expect(
      masked({
        writeKey: 'wk_live_1234567',
        properties: {
          password: 'hunter2',
          apiKey: 'k',
          access_token: { value: 'x' },
          cvc: 123,
          pin: 4711,
          isTokenValid: true,
        },
        traits: { phone: 5551, zip: 10115, latitude: 52.5 },
      }),
    ).toEqual({
      writeKey: '…',
      properties: {
        password: '…',
        apiKey: '…',
        access_token: '…',
        cvc: '…',
        pin: '…',
        isTokenValid: true,
      },
      traits: { phone: '…', zip: '…', latitude: '…' },
    })
  })

  test('hides numbers as long as those of telephones and cards', () => {
    expect(
      masked({
        properties: { a: 999_999, b: 1_234_567, c: 4_111_111_111_111_111, d: -1.5, e: 1e21 },
      }),
    ).toEqual({
      properties: { a: 999_999, b: '… 7 digits', c: '… 16 digits', d: -1.5, e: 1e21 },
    })
    expect(masked({ userId: 4711, properties: { latitudeText: 52.520_008 } })).toEqual({
      userId: '47…4',
      properties: { latitudeText: '…' },
    })
  })

  test('hides what stands in a structural field and is none', () => {
    expect(
      masked({
        type: 'jane@example.com',
        timestamp: 'born 1980-05-05',
        sentAt: 4_915_112_345_678,
        messageId: 'jane@example.com/1',
        context: { library: { name: '+49 151 1234567' }, os: 'jane', device: { type: ['jane'] } },
      }),
    ).toEqual({
      type: '…',
      timestamp: '…15',
      sentAt: '… 13 digits',
      messageId: 'ja…18',
      context: { library: { name: '…' }, os: '…4', device: { type: ['…4'] } },
    })
  })

  test('hides what stands in keys, and tells two hidden keys apart', () => {
    expect(
      masked({
        properties: {
          'jane@example.com': 1,
          'joe@example.com': 2,
          'Plan Name': 3,
          'call +49 (151) 123 4567': true,
        },
      }),
    ).toEqual({
      properties: { '…': 1, '… (2)': 2, 'Plan Name': 3, 'call …': true },
    })
  })

  test('keeps __proto__ a key like any other', () => {
    const call = JSON.parse('{"properties":{"__proto__":{"polluted":true},"constructor":1}}')
    expect(JSON.stringify(masked(call))).toBe(
      '{"properties":{"__proto__":{"polluted":true},"constructor":1}}',
    )
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })

  test('is no call at all when none came', () => {
    expect([masked('jane@example.com'), masked(7), masked(null), masked(['jane'])]).toEqual([
      '…16',
      7,
      null,
      ['…4'],
    ])
  })

  test('is bounded in depth, width and bytes, and says that it is', () => {
    let deep: Json = 'x'
    for (let level = 0; level < 5_000; level += 1) deep = level % 2 ? [deep] : { deep }
    expect(JSON.stringify(masked({ properties: { deep } }))).toContain('"… a ')
    const wide = Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`k${at}`, at]))
    expect(
      Object.keys((masked({ properties: wide }) as { properties: object }).properties),
    ).toHaveLength(101)
    expect(masked({ list: Array.from({ length: 50 }, () => true) })).toEqual({
      list: [...Array.from({ length: 20 }, () => true), '… 30 more'],
    })
    const huge = Object.fromEntries(
      Array.from({ length: 90 }, (_, at) => [
        `property number ${at}`,
        { é: 1, text: 'x'.repeat(1_000), list: Array.from({ length: 20 }, () => false) },
      ]),
    )
    const { call, isCut } = maskCall(huge as unknown as Json)
    expect(isCut).toBe(true)
    expect(Buffer.byteLength(JSON.stringify(call))).toBeLessThanOrEqual(maskLimits.bytesMax)
    expect(Buffer.byteLength(JSON.stringify(call))).toBeGreaterThan(maskLimits.bytesMax / 2)
    expect(maskCall({ small: 1 }).isCut).toBe(false)
  })
})

describe('a text that is shown', () => {
  test.each([
    'Order Completed',
    'order_completed',
    'OrderCompletedByCustomer',
    'Signup v2 Step 3',
    'Checkout: Payment Info Entered',
    'Produkt angesehen',
    'Заказ оформлен',
    'Sale 2026',
    '$pageview',
  ])('%s stays as it is', (name) => {
    expect(shown(name)).toBe(name)
  })

  test.each([
    ['e-mail', 'Invited jane.doe@example.com', 'jane'],
    ['encoded e-mail', 'Invited jane.doe%40example.com', 'jane'],
    ['twice encoded e-mail', 'Invited jane.doe%2540example.com', 'jane'],
    ['spelt e-mail', 'Invited jane (at) example.com', 'jane'],
    ['full-width e-mail', 'Invited jane＠example.com', 'jane'],
    ['telephone', 'Called +49 (0)151 / 123-45-67', '151'],
    ['dotted telephone', 'Called 030.1234.5678', '030'],
    ['Arabic digits', 'Called ٠١٢٣٤٥٦٧٨', '٠١٢'],
    ['card', 'Paid with 4111 1111 1111 1111', '4111'],
    ['social security number', 'SSN 078-05-1120', '078'],
    ['secret', 'Login password: hunter2!', 'hunter'],
    ['token', 'Token ghp_16C7e42F292c6912E7710c838347Ae178B4a', '16C7'],
    ['JWT', 'Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N', 'eyJh'],
    ['uuid', 'Opened 0199b1a2-7c1e-7b52-8d3f-1c2d3e4f5a6b', '0199'],
    ['IPv4', 'From 10.0.0.1', '10.0'],
    ['IPv6', 'From 2001:db8::1', '2001'],
    ['MAC', 'Device 00:1b:44:11:3a:b7', '1b'],
    ['URL', 'Visited https://shop.example/users/jane?sid=1', 'jane'],
    ['street', 'Moved to 12 Old Main Street', 'Main'],
    ['street in snake case', 'moved_to_12_main_street', 'main'],
    ['German street', 'Umzug Goethestraße 12', 'Goethe'],
    ['French street', 'Livraison rue de Rivoli 12', 'Rivoli'],
    ['zip code', 'Delivery to 10115', '10115'],
  ])('loses an address, number or secret: %s', (_kind, text, part) => {
    expect(shown(text)).not.toContain(part)
    expect(shown(text)).toContain('…')
  })

  test('holds nothing that a terminal obeys, and is short', () => {
    expect(shown('a\u001b[31mred\u0007\r\nnext\u202e')).toBe('a[31mred next')
    expect(shown('long word '.repeat(15)).length).toBeLessThanOrEqual(100)
    expect(shown('word '.repeat(50))).toBe('…250')
    expect(hiddenId('\u001b\u0000ab12345')).toBe('ab…9')
  })

  test('of a path keeps only steps that are words', () => {
    expect(shownPath('/pricing/annual-plans/index.html#top')).toBe(
      '/pricing/annual-plans/index.html',
    )
    expect(shownPath('/u/jane%40example.com/4711/aZ81kQ09xPl2/12-main-street/jane.doe')).toBe(
      '/u/…/…/…/…/…',
    )
    expect(shownPath('https://shop.example/x')).toBe('…//…/x')
  })
})

test('only random message ids are shown whole', () => {
  const random = 'ajs-next-1735689600000-0199b1a2-7c1e-4b52-8d3f-1c2d3e4f5a6b'
  expect(shownMessageId(random)).toBe(random)
  expect(shownMessageId('order-jane-1')).toBe('or…12')
})

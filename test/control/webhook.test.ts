import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { webhooksProblems } from '../../src/control/webhook.ts'
import type { Webhook } from '../../src/domain/configuration.ts'
import { aWebhook } from '../support/configuration.ts'

const judge = (
  webhooks: readonly { url: string; headers?: Record<string, string> }[],
  allowPrivate = true,
  allowed: readonly string[] = [],
) =>
  webhooksProblems(
    webhooks.map((webhook) => aWebhook(webhook)),
    { addresses: { allowPrivate, allowed } },
    '/webhooks',
  ).map(({ code, path }) => `${path} ${code}`)

const judgeUrl = (url: string, allowPrivate = true) => judge([{ url }], allowPrivate)
const judgeHeader = (name: string, value = 'x') =>
  judge([{ url: 'http://a.test', headers: { [name]: value } }])

describe('the webhooks of a destination', () => {
  test('one to five are taken, none and six are refused', () => {
    const urls = Array.from({ length: 6 }, (_, index) => ({ url: `https://h${index}.test/x?y=1` }))
    expect(judge(urls.slice(0, 1))).toEqual([])
    expect(judge(urls.slice(0, 5))).toEqual([])
    expect(judge(urls)).toEqual(['/webhooks webhooks_too_many'])
    expect(judge([])).toEqual(['/webhooks webhooks_missing'])
  })

  test.each([
    'http://a.test',
    'HTTPS://a.test:8443/x/y?z=ü#part',
    'http://127.0.0.1:9999/hook',
    'http://[::1]:80/',
    'http://bücher.test/',
  ])('the URL %j is taken', (url) => {
    expect(judgeUrl(url)).toEqual([])
  })

  test('a URL that is too long says how long it is, and how long it may be', () => {
    const longest = `http://a.test/${'x'.repeat(2_034)}`
    expect(longest.length).toBe(2_048)
    expect(judgeUrl(longest)).toEqual([])
    const rules = { addresses: { allowPrivate: true, allowed: [] } }
    const [problem] = webhooksProblems(
      [aWebhook({ url: `http://a.test/${'é'.repeat(400)}` })],
      rules,
      '',
    )
    expect(problem?.message).toContain('2414 characters')
    expect(problem?.message).toContain('at most 2048')
  })

  test.each([
    '',
    'a.test/hook',
    '//a.test/hook',
    'ftp://a.test/hook',
    'javascript:alert(1)',
    'http:a.test',
    'http:/a.test',
    'http://',
    'http:///x y',
    ' http://a.test',
    'http://a.test/ x',
    'http://a.te\tst/',
    'http://a.test\\@b.test/',
    'http://user:secret@a.test/',
    'http://a.test:99999/',
    'http://a.test:0/',
    'https://a.test:00/',
    'http:///a.test/',
    'http:////a.test/',
    'http://a.test/\ud800',
    `http://a.test/${'x'.repeat(2_048)}`,
    // By what is sent, and by what is kept.
    `http://a.test/${'é'.repeat(400)}`,
    `http://a.test/${'ü/../'.repeat(400)}`,
  ])('the URL %j is refused', (url) => {
    expect(judgeUrl(url)).toEqual(['/webhooks/0/url webhook_url_invalid'])
  })

  test.each([
    'http://127.0.0.1/',
    'http://2130706433/',
    'http://0x7f.1/',
    'http://10.1.2.3/',
    'http://192.168.1.1/',
    'http://100.64.0.1/',
    'http://127.0.0.1./',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[fd00::1]/',
    'http://localhost:8080/',
    'http://LOCALHOST./',
    'http://api.localhost/',
  ])('the private URL %j is refused unless private ones are allowed', (url) => {
    expect(judgeUrl(url, false)).toEqual(['/webhooks/0/url webhook_url_private'])
    expect(judgeUrl(url, true)).toEqual([])
  })

  test.each([
    'http://169.254.169.254/latest',
    'http://0.0.0.0/',
    'http://[fe80::1]/',
    'http://[64:ff9b::7f00:1]/',
    'http://[::ffff:0:127.0.0.1]/',
  ])('the reserved URL %j is refused unless its network is allowed', (url) => {
    expect(judgeUrl(url, true)).toEqual(['/webhooks/0/url webhook_url_private'])
    expect(
      judge([{ url }], false, [
        '169.254.0.0/16',
        '0.0.0.0',
        'fe80::/10',
        '64:ff9b::/96',
        '::ffff:0:0:0/96',
      ]),
    ).toEqual([])
  })

  test.each(['http://a.test/', 'http://8.8.8.8/', 'https://[2606:4700::1111]/'])(
    'the public URL %j is taken where private ones are not',
    (url) => {
      expect(judgeUrl(url, false)).toEqual([])
    },
  )

  test.each([
    'Host',
    'content-length',
    'Content-Type',
    'Transfer-Encoding',
    'connection',
    'Keep-Alive',
    'TE',
    'Trailer',
    'Upgrade',
    'Expect',
    'Proxy-Authorization',
    'User-Agent',
    'X-Signature',
    'x-signature-256',
    'Content-Encoding',
    'Webhook-Id',
    'webhook-timestamp',
    'webhook-signature',
    'HTTP2-Settings',
  ])('the header %j is ours', (name) => {
    expect(judgeHeader(name)).toEqual([`/webhooks/0/headers/${name} header_reserved`])
  })

  test.each(['', 'a b', 'a:b', 'é', 'a\r\nb', '__proto__'])('%j is no header name', (name) => {
    const headers = JSON.parse(`{${JSON.stringify(name)}: "x"}`)
    expect(judge([{ url: 'http://a.test', headers }])).toEqual([
      expect.stringMatching(/header_name_invalid$/),
    ])
  })

  test('a line break, a control character or one beyond ASCII is no header value', () => {
    for (const value of ['a\r\nX-B: c', 'a\nb', 'a\u0000', '\u007f', 'é', '€', '😀'])
      expect(judgeHeader('X-A', value)).toEqual(['/webhooks/0/headers/X-A header_value_invalid'])
    for (const value of ['', 'a\tb', 'Bearer abc==']) expect(judgeHeader('X-A', value)).toEqual([])
  })

  test('certificates and keys that cannot be used are refused, and nothing of them is repeated', () => {
    const pem = (name: string) =>
      readFileSync(new URL(`../http/tls/${name}`, import.meta.url), 'utf8')
    const [certificate, key] = [pem('client.crt'), pem('client.key')]
    const problemsOf = (over: Partial<Webhook>) =>
      webhooksProblems(
        [aWebhook({ url: 'https://a.test', ...over })],
        { addresses: { allowPrivate: true, allowed: [] } },
        '/webhooks',
      )
    expect(problemsOf({ ca: pem('ca.crt'), clientCertificate: { certificate, key } })).toEqual([])
    const other = pem('other.key')
    const refused = problemsOf({ ca: key, clientCertificate: { certificate, key: other } })
    expect(refused.map(({ code, path }) => `${path} ${code}`)).toEqual([
      '/webhooks/0/ca webhook_tls_invalid',
      '/webhooks/0/clientCertificate webhook_tls_invalid',
    ])
    expect(JSON.stringify(refused)).not.toContain('BEGIN')
    expect(problemsOf({ ca: '' })).toHaveLength(1)
  })

  test('a header twice in different case, and more headers than fit, are refused', () => {
    const url = 'http://a.test'
    expect(judge([{ url, headers: { 'X-A': '1', 'x-a': '2' } }])).toEqual([
      '/webhooks/0/headers/x-a header_duplicate',
    ])
    expect(judgeHeader('X-A', 'x'.repeat(9_000))).toEqual(['/webhooks/0/headers headers_too_many'])
    const many = Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`X-${at}`, 'v']))
    expect(judge([{ url, headers: many }])).toEqual(['/webhooks/0/headers headers_too_many'])
  })
})

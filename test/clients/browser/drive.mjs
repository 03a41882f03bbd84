// Drives browser SDKs in headless Chromium: one JSON order as argument, one JSON outcome on stdout; the
// browser stays open until stdin ends, as a visitor's would, and each line there is another page's order.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'

const order = JSON.parse(process.argv[2])
const folder = dirname(fileURLToPath(import.meta.url))
const packages = join(dirname(createRequire(import.meta.url).resolve('playwright-core')), '..')

/** What a page may load: our own pages, and the bundles as they are published. */
const files = {
  '/visitor.js': join(folder, 'visitor.js'),
  '/segment.js': join(packages, '@segment/analytics-next/dist/umd/index.js'),
  '/snippet.js': join(packages, '@segment/analytics-next/dist/umd/standalone.js'),
  '/rudder.js': join(packages, '@rudderstack/analytics-js/dist/npm/modern/bundled/umd/index.js'),
}

const pages = {
  '/elsewhere': '',
  '/segment': '<script src="/visitor.js"></script><script src="/segment.js"></script>',
  '/snippet': '<script src="/visitor.js"></script>',
  '/rudder': '<script src="/visitor.js"></script><script src="/rudder.js"></script>',
}

const site = createServer(async (request, response) => {
  const { pathname } = new URL(request.url ?? '/', 'http://site')
  if (pathname in pages) {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
    response.end(`<!doctype html><title>Shop</title>${pages[pathname]}<h1>${pathname}</h1>`)
  } else if (pathname in files) {
    response.writeHead(200, { 'content-type': 'text/javascript; charset=utf-8' })
    response.end(await readFile(files[pathname]))
  } else response.writeHead(404).end()
})
await new Promise((resolve) => site.listen(0, '127.0.0.1', resolve))
const origin = `http://127.0.0.1:${site.address().port}`

const browser = await chromium.launch({
  executablePath: order.chromium,
  args: process.getuid() === 0 ? ['--no-sandbox'] : [],
})
const page = await browser.newPage()
const errors = []
/** What went to Millrace, as the browser has it. */
const requests = []
/** Message ids of calls that were answered 200. */
const answered = new Set()
page.on('pageerror', (error) => errors.push(String(error)))
page.on('console', (message) => process.stderr.write(`${message.type()} ${message.text()}\n`))
page.on('request', (request) => {
  if (!request.url().startsWith(origin)) requests.push(`${request.method()} ${request.url()}`)
})
page.on('response', async (response) => {
  if (response.status() !== 200 || response.request().method() !== 'POST') return
  const body = JSON.parse(response.request().postData() ?? '{}')
  for (const call of body.batch ?? [body]) answered.add(call.messageId)
})

const until = async (holds, what) => {
  const endsAt = Date.now() + 240_000
  while (!holds()) {
    if (Date.now() > endsAt) throw new Error(`not within 240 s: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

try {
  await page.goto(`${origin}/${order.page}`)
  const outcome = await page.evaluate((given) => globalThis.visit(given), order)
  if (order.leave === 'navigate') await page.goto(`${origin}/elsewhere`)
  else if (order.leave === undefined)
    await until(() => answered.size >= outcome.sent, `${outcome.sent} calls are answered`)
  outcome.errors.push(...errors)
  process.stdout.write(`${JSON.stringify({ ...outcome, requests })}\n`)
  for await (const line of createInterface(process.stdin)) {
    const next = JSON.parse(line)
    await page.goto(`${origin}/${next.page}`)
    await page.evaluate((given) => globalThis.visit(given), next)
  }
} finally {
  await browser.close()
  site.close()
}

// Drives the dashboard in headless Chromium as an operator does: one JSON order as argument, one JSON outcome on stdout.
import { chromium } from 'playwright-core'

const order = JSON.parse(process.argv[2])
const patience = { timeout: 60_000 }

const browser = await chromium.launch({
  executablePath: order.chromium,
  args: process.getuid() === 0 ? ['--no-sandbox'] : [],
})
const errors = []
/** Whatever it asks of anybody else. */
const strange = []

try {
  const page = await browser.newPage({ viewport: { width: 1_100, height: 1_200 } })
  page.on('pageerror', (error) => errors.push(String(error)))
  page.on('request', (request) => {
    if (!request.url().startsWith(`${order.host}/`)) strange.push(request.url())
  })
  const keep = async (name) => {
    if (order.screenshots) await page.screenshot({ path: `${order.screenshots}/${name}.png` })
  }
  const enter = async (token) => {
    await page.fill('#token', token)
    await page.click('#entry button[type=submit]')
  }
  const card = (key) => page.locator(`article[data-key="${key}"]`)
  const inState = (key, state) =>
    card(key)
      .locator('.state', { hasText: new RegExp(`^${state}$`) })
      .waitFor(patience)
  const textOf = async (key) =>
    (await card(key).locator('h3, .state, button, .said, dt, dd').allTextContents()).join(' ')

  await page.goto(`${order.host}/`)
  await keep('entry')
  await enter('of nobody')
  await page.locator('#notice:visible').waitFor(patience)
  const refusal = await page.textContent('#notice')

  await enter(order.token)
  await inState(order.replay, 'running')
  await page.locator(`article[data-key="${order.replay}"] progress`).waitFor(patience)
  await inState(order.import, 'running')
  await inState(order.deletion, 'finished')
  const [summary, replay, imported, deletion] = [
    await page.textContent('#summary'),
    await textOf(order.replay),
    await textOf(order.import),
    await textOf(order.deletion),
  ]
  const share = await card(order.import)
    .locator('progress')
    .evaluate((bar) => bar.value)
  await keep('jobs')

  await card(order.replay).getByRole('button', { name: 'Pause' }).click()
  await inState(order.replay, 'paused')
  await card(order.replay).getByRole('button', { name: 'Resume' }).click()
  await inState(order.replay, 'running')
  await card(order.replay).getByRole('button', { name: 'Cancel' }).click()
  const asked = await page.locator('#sure p').textContent()
  await keep('sure')
  await page.locator('#sure').getByRole('button', { name: 'Go back' }).click()
  await page.locator('#sure').waitFor({ state: 'hidden', ...patience })
  await inState(order.replay, 'running')
  await card(order.replay).getByRole('button', { name: 'Cancel' }).click()
  await page.locator('#sure').getByRole('button', { name: 'Cancel' }).click()
  await inState(order.replay, 'cancelled')
  const steps = await card(order.replay).getByRole('button').count()

  // What the tab keeps is gone with its sign-out.
  await page.click('#leave')
  const kept = await page.evaluate(() => sessionStorage.length)

  await enter(order.viewer)
  await inState(order.import, 'running')
  await card(order.import).getByRole('button', { name: 'Cancel' }).click()
  await page.locator('#sure').getByRole('button', { name: 'Cancel' }).click()
  await page.locator('#notice:visible').waitFor(patience)
  const forbidden = await page.textContent('#notice')
  await inState(order.import, 'running')

  await page.emulateMedia({ colorScheme: 'dark' })
  await page.setViewportSize({ width: 400, height: 900 })
  await keep('dark-narrow')
  const overflow = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  )
  const told = { refusal, summary, replay, imported, deletion, share, asked, steps, kept }
  process.stdout.write(
    `${JSON.stringify({ sent: 0, errors, ...told, forbidden, overflow, strange })}\n`,
  )
} finally {
  await browser.close()
}

// What pages of every consumer have in common: a source, what they call, and how it gets to the far end.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { freshId, type Line, openLine } from '../clients/line.ts'
import { send } from './log.ts'
import {
  type Consumer,
  expectQuiet,
  type Order,
  type PageRan,
  runPage,
  tempFolder,
} from './page.ts'

export const writeKey = freshId('wk')

/** One for the file that asks, closed with it. */
export const lineOfFile = (): { readonly line: Line } => {
  const held: { line?: Line } = {}
  beforeAll(async () => {
    held.line = await openLine(freshId('pages'), [{ name: 'server', class: 'server', writeKey }])
  })
  afterAll(() => held.line?.close())
  return {
    get line() {
      if (held.line === undefined) throw new Error('the line is not open yet')
      return held.line
    },
  }
}

export type Visit = Partial<Order> & Pick<Order, 'calls'> & { readonly consumer: Consumer }

/** Serves a page; what it only wrote to a log is sent by send.php, as a scheduler would. */
export const visit = async (url: string, { consumer, ...order }: Visit): Promise<PageRan> => {
  const filename = join(await tempFolder(), 'analytics.log')
  const options = { consumer, host: url, filename, ...order.options }
  const ran = await runPage({ writeKey, ...order, options })
  if (consumer === 'file') expectQuiet(await send({ writeKey, log: filename, host: url }))
  return ran
}

/** A folder for the spools of several pages. */
export const sharedFolder = async (): Promise<string> => {
  const path = join(await tempFolder(), 'shared')
  await mkdir(path, { mode: 0o700 })
  return path
}

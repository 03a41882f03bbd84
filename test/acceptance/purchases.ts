// The purchases the acceptance runs on: the CDNOW set where it lies beside the project, else a generated
// set of the same shape (customers who first buy within a quarter, then ever more rarely).
import { existsSync, readFileSync } from 'node:fs'
import { seeded } from '../support/seeded.ts'

export type Purchase = {
  readonly row: number
  readonly customer: string
  /** Midnight UTC of the purchase date, epoch ms. */
  readonly at: number
  readonly quantity: number
  readonly price: number
}

const dayMs = 86_400_000

export const firstDay = Date.UTC(1997, 0, 1)
const days = 546

const cdnow = new URL('../../../shared/data/cdnow_transactions.csv', import.meta.url)

export type Purchases = { readonly name: string; readonly purchases: readonly Purchase[] }

/** All purchases in order of time. */
export const loadPurchases = (seed: number): Purchases =>
  existsSync(cdnow)
    ? { name: 'cdnow', purchases: byTime(readCdnow()) }
    : { name: `generated, seed ${seed}`, purchases: generatePurchases(seed, 23_570) }

/** Those of every nth customer, as `ACCEPTANCE_CUSTOMERS` says. */
export const loadSampled = (seed: number): Purchases => {
  const nth = Number(process.env['ACCEPTANCE_CUSTOMERS'] ?? 1)
  const { name, purchases } = loadPurchases(seed)
  return { name, purchases: purchases.filter(({ customer }) => Number(customer) % nth === 0) }
}

const readCdnow = (): Purchase[] =>
  readFileSync(cdnow, 'utf8')
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line, row) => {
      const [customer = '', date = '', cds, value] = line.split(',')
      const at = Date.parse(`${date}T00:00:00.000Z`)
      return { row, customer, at, quantity: Number(cds), price: Number(value) }
    })

export const generatePurchases = (seed: number, customers: number): readonly Purchase[] => {
  const random = seeded(seed)
  const purchases: Purchase[] = []
  for (let customer = 1; customer <= customers; customer++) {
    let day = Math.floor(random() * 90)
    let pause = 10 + random() * 40
    while (day < days) {
      purchases.push({
        row: purchases.length,
        customer: String(customer),
        at: firstDay + day * dayMs,
        quantity: 1 + Math.floor(random() ** 3 * 6),
        price: Math.round(Math.exp(2.2 + random() * 3) * 100) / 100,
      })
      if (random() < 0.34) break
      day += Math.max(0, Math.round(-Math.log(1 - random()) * pause))
      pause *= 1.3
    }
  }
  return byTime(purchases)
}

const byTime = (purchases: Purchase[]) => purchases.sort((a, b) => a.at - b.at || a.row - b.row)

// Measures a product against the bare code it stands on: alternating runs, median ratio, one last line.

/** What one run reached, counted at the far end. */
export type Figure = {
  /** Work per second. */
  readonly rate: number
  /** Printed beside the rate: CPU, RSS, latencies. */
  readonly notes?: Readonly<Record<string, number | string>>
}

export type Run = (seconds: number) => Promise<Figure>

/** What `bench/main.ts` gives to a bench: how long one run lasts, and how many pairs to take. */
export type Span = {
  readonly seconds: number
  readonly pairs: number
  /** The time for all runs together, where one was asked for. */
  readonly total?: number
}

const partRunSeconds = 1

/** One of so many parts that are measured one after the other; runs are shortened, not left out. */
export const partOf = (span: Span, parts: number): Span => {
  if (span.total === undefined) return span
  const each = span.total / parts
  // Two more for warming up.
  const pairs = Math.max(1, Math.min(span.pairs, Math.floor(each / (2 * partRunSeconds)) - 1))
  return { pairs, seconds: each / (2 * (pairs + 1)) }
}

export type Pairs = Omit<Span, 'total'> & {
  readonly name: string
  /** The ratio of rates that must be reached; with `lower`, the most that may be reached. */
  readonly budget: number
  readonly lower?: boolean
  /** The unit of `rate`, for the reader. */
  readonly unit?: string
  /** What the two are called, where the first is not bare code. */
  readonly sides?: readonly [bare: string, product: string]
  /** Whether to run each once before; unless said otherwise. */
  readonly warmUp?: boolean
  /** How long that is; unless said otherwise two seconds at most. */
  readonly warmUpSeconds?: number
  readonly bare: Run
  readonly product: Run
}

/** Warms both, alternates them, prints figures and the last line; returns the median ratio. */
export const runPairs = async (options: Pairs): Promise<number> => {
  const { bare, product, seconds, pairs } = options
  // Compilers need thousands of calls before a rate means anything.
  const { warmUpSeconds = Math.min(2, seconds) } = options
  if (options.warmUp ?? true) {
    await bare(warmUpSeconds)
    await product(warmUpSeconds)
  }
  const taken: { readonly bare: Figure; readonly product: Figure }[] = []
  for (let pair = 0; pair < pairs; pair += 1) {
    // Whoever goes second may find a warmer machine: take turns.
    const first = pair % 2 === 0 ? await bare(seconds) : null
    const second = await product(seconds)
    const figures = { bare: first ?? (await bare(seconds)), product: second }
    taken.push(figures)
    printPair(options, pair + 1, figures)
  }
  const ratio = median(taken.map((pair) => pair.product.rate / pair.bare.rate))
  const unit = options.unit ?? 'per second'
  const [first, second] = sidesOf(options)
  console.log(
    `median ${first} ${whole(median(taken.map((pair) => pair.bare.rate)))} ${unit}, ${second} ${whole(median(taken.map((pair) => pair.product.rate)))} ${unit}, ${pairs} pairs of ${seconds.toFixed(1)} s`,
  )
  console.log(
    `${options.name} ratio ${ratio.toFixed(3)} budget ${options.lower ? 'at most ' : ''}${options.budget}`,
  )
  return ratio
}

const sidesOf = ({ sides = ['bare', 'product'] }: Pairs) => sides

const printPair = (
  options: Pairs,
  number: number,
  pair: { readonly bare: Figure; readonly product: Figure },
) => {
  const ratio = (pair.product.rate / pair.bare.rate).toFixed(3)
  const [first, second] = sidesOf(options)
  console.log(
    `pair ${number}: ${first} ${described(pair.bare)}; ${second} ${described(pair.product)}; ratio ${ratio} (${options.unit ?? 'per second'})`,
  )
}

const described = ({ rate, notes = {} }: Figure) =>
  [
    whole(rate),
    ...Object.entries(notes).map(
      ([name, value]) =>
        `${name} ${typeof value === 'number' ? Number(value.toPrecision(4)) : value}`,
    ),
  ].join(', ')

const whole = (rate: number) => Math.round(rate).toLocaleString('en-US')

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

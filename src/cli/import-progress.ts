// How an import goes, told while it goes: a bar on a terminal, else a line every few seconds.
import type { Terminal } from './command.ts'

export type Figures = {
  /** Bytes as they are stored, read so far. */
  readonly read: number
  readonly size: number | null
  readonly calls: number
  readonly rejected: number
}

export type Progress = {
  tell(figures: Figures): void
  end(): void
}

const barMs = 200
const linesMs = 5_000
const barWidth = 24

export const openProgress = (terminal: Terminal, name: string): Progress => {
  const startedAt = performance.now()
  let first: Figures | null = null
  let told = startedAt
  const { over } = terminal
  const isBar = terminal.isTTY && over !== undefined
  return {
    tell: (figures) => {
      first ??= figures
      const at = performance.now()
      if (at - told < (isBar ? barMs : linesMs)) return
      told = at
      const line = lineOf(name, { first, figures, seconds: (at - startedAt) / 1_000 })
      if (isBar) over(line)
      else terminal.err(line)
    },
    end: () => {
      if (isBar) over('')
    },
  }
}

type Span = { readonly first: Figures; readonly figures: Figures; readonly seconds: number }

/** Rates are of this run: what an earlier one imported took no time of it. */
export const lineOf = (name: string, { first, figures, seconds }: Span): string => {
  const { read, size, calls, rejected } = figures
  const rate = (calls - first.calls) / seconds
  const bytesRate = (read - first.read) / seconds
  const parts = [
    `${whole(calls)} calls`,
    `${whole(rate)}/s`,
    `${megabytes(read)}${size === null ? '' : ` of ${megabytes(size)}`} MB`,
    ...(rejected > 0 ? [`${whole(rejected)} rejected`] : []),
  ]
  if (size === null || size === 0) return `${name}: ${parts.join(', ')}`
  const share = Math.min(1, read / size)
  if (bytesRate > 0) parts.push(`${durationOf((size - read) / bytesRate)} left`)
  const full = Math.round(share * barWidth)
  const bar = `[${'#'.repeat(full)}${'.'.repeat(barWidth - full)}]`
  return `${name} ${bar} ${Math.floor(share * 100)}% ${parts.join(', ')}`
}

const whole = (amount: number) => Math.round(amount).toLocaleString('en-US')
const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1)

export const durationOf = (seconds: number): string => {
  const left = Math.ceil(seconds)
  if (left < 60) return `${left}s`
  if (left < 3_600) return `${Math.floor(left / 60)}m${left % 60}s`
  return `${Math.floor(left / 3_600)}h${Math.floor((left % 3_600) / 60)}m`
}

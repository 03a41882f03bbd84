// Watches the event loop: while it is late for long, new requests are refused before their bodies cost anything.
import { monitorEventLoopDelay } from 'node:perf_hooks'

export type LoadLimits = {
  /** How late the event loop may be. */
  readonly loopDelayMsMax: number
  /** How often that is looked at. */
  readonly loopSampleEveryMs: number
  /** So many looks in a row, all late or all on time, change what is done. */
  readonly loopSamples: number
}

export type Gauge = {
  observe(delayMs: number): void
  /** 0 while calls are taken, else by how much the loop is later than it may be: 1 or more. */
  excess(): number
}

/** On time means half of what would be late, so that it does not go on and off. */
export const openGauge = ({ loopDelayMsMax, loopSamples }: LoadLimits): Gauge => {
  let isShedding = false
  let inRow = 0
  let last = 0
  return {
    observe: (delayMs) => {
      last = delayMs
      const isAgainst = isShedding ? delayMs <= loopDelayMsMax / 2 : delayMs > loopDelayMsMax
      inRow = isAgainst ? inRow + 1 : 0
      if (inRow < loopSamples) return
      isShedding = !isShedding
      inRow = 0
    },
    excess: () => (isShedding ? Math.max(1, last / loopDelayMsMax) : 0),
  }
}

export type Load = Pick<Gauge, 'excess'> & { stop(): void }

/** How finely the delay is measured; on an idle loop each measure is this long. */
const resolution = 20

export const openLoad = (limits: LoadLimits): Load => {
  const gauge = openGauge(limits)
  const delays = monitorEventLoopDelay({ resolution })
  delays.enable()
  const timer = setInterval(() => {
    // The first turn after a reset only begins a measure: a blocked loop has but few turns.
    if (delays.count === 0) return
    gauge.observe(Math.max(0, delays.max / 1e6 - resolution))
    delays.reset()
  }, limits.loopSampleEveryMs)
  timer.unref()
  return {
    excess: gauge.excess,
    stop: () => {
      clearInterval(timer)
      delays.disable()
    },
  }
}

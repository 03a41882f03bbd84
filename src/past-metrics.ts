// The metrics of rebuilds and replays in Prometheus form: read from their meters when somebody asks.
import { Counter, Gauge, type Registry } from 'prom-client'
import type { RebuildMeter } from './rebuild/meter.ts'
import type { ReplayMeter } from './replay/meter.ts'

type About = { readonly name: string; readonly help: string; readonly label?: string }
type Values = readonly (readonly [string, number])[]

/** `label` names what the values are by; without one there is a single value. */
const add = (
  registry: Registry,
  { name, help, label }: About,
  read: () => number | Values,
): void => {
  const isCounter = name.endsWith('_total')
  const tell = (of: Counter | Gauge) => {
    const values = read()
    if (typeof values === 'number') of.inc(values)
    else for (const [value, amount] of values) of.inc({ [label as string]: value }, amount)
  }
  const about = { name, help, registers: [registry], labelNames: label ? [label] : [] }
  if (isCounter)
    new Counter({
      ...about,
      collect() {
        this.reset()
        tell(this)
      },
    })
  else
    new Gauge({
      ...about,
      collect() {
        this.reset()
        tell(this)
      },
    })
}

export const addRebuildMetrics = (registry: Registry, meter: RebuildMeter): void => {
  add(
    registry,
    {
      name: 'rebuild_state',
      help: '1 for the state of the rebuild this process works on',
      label: 'state',
    },
    () => (meter.state === null ? [] : [[meter.state, 1]]),
  )
  add(
    registry,
    { name: 'rebuild_left_calls', help: 'Calls between it and the live projector' },
    () => meter.left,
  )
  add(
    registry,
    {
      name: 'rebuild_standstill_seconds',
      help: 'How long the live projector stood still for the last swap',
    },
    () => (meter.standstillMs ?? 0) / 1_000,
  )
  add(
    registry,
    { name: 'rebuild_swaps_put_off_total', help: 'Tries to swap that waited for something' },
    () => meter.swapsPutOff,
  )
  add(
    registry,
    { name: 'rebuild_ended_total', help: 'Rebuilds this process ended, by how', label: 'end' },
    () => [...meter.ended],
  )
}

export const addReplayMetrics = (registry: Registry, meter: ReplayMeter): void => {
  add(registry, { name: 'replay_open', help: 'Open replays, by state', label: 'state' }, () => [
    ...meter.open,
  ])
  add(
    registry,
    { name: 'replay_troubled', help: 'Replays that paused by themselves' },
    () => meter.troubled,
  )
  add(
    registry,
    {
      name: 'replay_outstanding_calls',
      help: 'Calls replayed and neither delivered nor given up yet',
    },
    () => meter.outstanding,
  )
  add(
    registry,
    { name: 'replay_offsets_read_total', help: 'Offsets this process read for replays' },
    () => meter.read,
  )
  add(
    registry,
    { name: 'replay_sent_total', help: 'Calls this process sent on their way' },
    () => meter.sent,
  )
}

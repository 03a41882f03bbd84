// The process's metrics in Prometheus form; stages hand in counts and know nothing of it.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { type ArchiveMeter, openArchiveMeter } from './archive/meter.ts'
import { addArchiveMetrics } from './archive-metrics.ts'
import type { Count, CountName } from './collect/count.ts'
import { type Meter, openMeter } from './deliver/meter.ts'
import { addDeliveryMetrics } from './delivery-metrics.ts'
import type { Counted } from './domain/pipeline.ts'
import { addRebuildMetrics, addReplayMetrics } from './past-metrics.ts'
import { openRebuildMeter, type RebuildMeter } from './rebuild/meter.ts'
import { openReplayMeter, type ReplayMeter } from './replay/meter.ts'

export type Metrics = {
  readonly contentType: string
  text(): Promise<string>
  /** What the collect stage counts. */
  readonly count: Count
  /** What happened to calls, by source, step and reason. */
  readonly countCalls: (counted: Counted, amount: number) => void
  /** What the deliver stage counts. */
  readonly meter: Meter
  /** What the archive stage counts. */
  readonly archive: ArchiveMeter
  readonly rebuild: RebuildMeter
  readonly replay: ReplayMeter
  /** Told of each deletion request that ended, with the seconds since it was made. */
  readonly deletionEnded: (state: 'finished' | 'failed', seconds: number) => void
  /** A figure of the database, shown as it was when it was last read: no answer waits for it. */
  addFigure(figure: Figure): void
  /** Called before every answer, to hand in what was held back. */
  beforeText(handIn: () => void): void
}

const counted: Readonly<
  Record<CountName, { readonly help: string; readonly labels: readonly string[] }>
> = {
  'calls.changed': { help: 'Calls kept, but not exactly as they came', labels: ['flag'] },
  'clients.counted': { help: 'What clients count about themselves', labels: ['metric'] },
  'keys.differed': { help: 'Requests whose header and body named different keys', labels: [] },
  'requests.refused': { help: 'Requests refused whole', labels: ['code'] },
}

export const openMetrics = (): Metrics => {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const counters = new Map(
    Object.entries(counted).map(([name, { help, labels }]) => [
      name,
      new Counter({
        name: `millrace_${name.replace('.', '_')}_total`,
        help,
        labelNames: labels.map(labelName),
        registers: [registry],
      }),
    ]),
  )
  const countCalls = callCounter(registry)
  const meter = openMeter()
  addDeliveryMetrics(registry, meter)
  const archive = openArchiveMeter()
  addArchiveMetrics(registry, archive)
  const rebuild = openRebuildMeter()
  addRebuildMetrics(registry, rebuild)
  const replay = openReplayMeter()
  addReplayMetrics(registry, replay)
  const handIns: (() => void)[] = []
  return {
    contentType: registry.contentType,
    text: () => {
      for (const handIn of handIns) handIn()
      return registry.metrics()
    },
    countCalls,
    meter,
    deletionEnded: deletionMetrics(registry),
    archive,
    rebuild,
    replay,
    addFigure: (figure) => addFigure(registry, figure),
    beforeText: (handIn) => void handIns.push(handIn),
    count: (name, labels, amount) => {
      const named = Object.entries(labels).map(([label, value]) => [labelName(label), value])
      counters.get(name)?.inc(Object.fromEntries(named), amount)
    },
  }
}

export type Figure = {
  readonly name: string
  readonly help: string
  readonly read: () => Promise<number>
}

/** Each answer asks for the next one's; a figure that cannot be read stays what it was. */
const addFigure = (registry: Registry, { name, help, read }: Figure): void => {
  let reading = false
  const gauge = new Gauge({
    ...{ name, help, registers: [registry] },
    collect: () => {
      if (reading) return
      reading = true
      read()
        .then((value) => gauge.set(value))
        .catch(() => undefined)
        .finally(() => {
          reading = false
        })
    },
  })
}

const deletionMetrics = (registry: Registry): Metrics['deletionEnded'] => {
  const seconds = new Histogram({
    name: 'millrace_deletion_seconds',
    help: 'From the request of a deletion to its end, by state',
    labelNames: ['state'],
    buckets: [15, 20, 30, 60, 120, 300, 900, 3_600, 14_400, 86_400],
    registers: [registry],
  })
  return (state, taken) => seconds.observe({ state }, taken)
}

/** Labels sets beyond it share the source `other`: nobody's configuration may drown the metrics. */
const labelSetsMax = 2_000

const callCounter = (registry: Registry): Metrics['countCalls'] => {
  const counter = new Counter({
    name: 'millrace_pipeline_calls_total',
    help: 'What happened to calls: received, then rejected, filtered or appended; at destinations, filtered',
    labelNames: ['source_id', 'at', 'step', 'reason'],
    registers: [registry],
  })
  const known = new Set<string>()
  return ({ sourceId, destinationId, step, reason }, amount) => {
    const at = destinationId === null ? 'source' : 'destination'
    const name = `${sourceId} ${at} ${step} ${reason ?? ''}`
    const isKnown = known.has(name) || known.size < labelSetsMax
    if (isKnown) known.add(name)
    const source_id = isKnown ? String(sourceId) : 'other'
    counter.inc({ source_id, at, step, reason: reason ?? '' }, amount)
  }
}

const labelName = (name: string) =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

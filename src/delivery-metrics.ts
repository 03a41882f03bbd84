// Delivery's metrics in Prometheus form: read from its meter when somebody asks, so that counting stays cheap.
import type { Metric, Registry } from 'prom-client'
import { type Histogram, type Meter, phases, urlStandings } from './deliver/meter.ts'

export const addDeliveryMetrics = (registry: Registry, meter: Meter): void => {
  addCounters(registry, meter)
  addGauges(registry, meter)
  addFigures(registry, meter)
  registry.registerMetric(
    histogram({
      name: 'webhook_attempt_seconds',
      help: 'Time of one request, by phase',
      read: () => phases.map((phase) => ({ labels: { phase }, of: meter.phaseSeconds[phase] })),
    }),
  )
  registry.registerMetric(
    histogram({
      name: 'webhook_first_attempt_lag_seconds',
      help: 'From a call received to its first request to a destination',
      read: () => [{ labels: {}, of: meter.firstLag }],
    }),
  )
  registry.registerMetric(
    histogram({
      name: 'webhook_end_to_end_seconds',
      help: 'From a call received, or parked, to its delivery',
      read: () => [{ labels: {}, of: meter.endToEnd }],
    }),
  )
}

type Labelled = readonly (readonly [Record<string, string>, number])[]

type Read = {
  readonly name: string
  readonly help: string
  readonly read: () => Labelled
}

const counter = (registry: Registry, read: Read): void => add(registry, 'counter', read)
const gauge = (registry: Registry, read: Read): void => add(registry, 'gauge', read)

const add = (registry: Registry, type: 'counter' | 'gauge', { name, help, read }: Read): void =>
  registry.registerMetric(
    metricOf({ name, help, type }, () => read().map(([labels, value]) => ({ labels, value }))),
  )

type About = { readonly name: string; readonly help: string; readonly type: string }
type Value = {
  readonly metricName?: string
  readonly labels: Record<string, string>
  readonly value: number
}

/** The client's own metrics are told of each event, and a gauge without labels is never absent; this is read. */
const metricOf = (about: About, values: () => readonly Value[]): Metric => {
  const metric = {
    ...about,
    aggregator: 'sum',
    get: async () => ({ ...about, aggregator: 'sum', values: values() }),
    reset: () => undefined,
  }
  return metric as unknown as Metric
}

const plain = (value: number): Labelled => [[{}, value]]

const by = (label: string, counts: ReadonlyMap<string, number>): Labelled =>
  [...counts].map(([value, count]) => [{ [label]: value }, count] as const)

const addCounters = (registry: Registry, meter: Meter): void => {
  counter(registry, {
    name: 'webhook_rounds_total',
    help: 'Rounds: one message posted to every usable URL of a destination',
    read: () => by('result', meter.rounds),
  })
  counter(registry, {
    name: 'webhook_attempts_total',
    help: 'Requests made, by what their answer means',
    read: () =>
      [...meter.attempts].flatMap(([type, reasons]) =>
        [...reasons].map(([reason, count]) => [{ class: type, reason }, count] as const),
      ),
  })
  counter(registry, {
    name: 'webhook_dead_total',
    help: 'Messages given up',
    read: () => by('reason', meter.dead),
  })
  counter(registry, {
    name: 'operator_alerts_total',
    help: 'Alerts to the operator: sent, given up, or dropped as too many waited',
    read: () => by('result', meter.alerts),
  })
  counter(registry, {
    name: 'webhook_order_suspended_total',
    help: 'Chains whose order was given up for a while',
    read: () => plain(meter.orderSuspended),
  })
  counter(registry, {
    name: 'webhook_connections_total',
    help: 'Connections that carried a request',
    read: () => [
      [{ reused: 'true' }, meter.reusedConnections],
      [{ reused: 'false' }, meter.newConnections],
    ],
  })
  counter(registry, {
    name: 'webhook_duplicate_suspected_total',
    help: 'Requests whose answer was lost, so that the receiver may get the message twice',
    read: () => plain(meter.duplicatesSuspected),
  })
}

const addGauges = (registry: Registry, meter: Meter): void => {
  gauge(registry, {
    name: 'webhook_breaker_state',
    help: 'URLs of this process by how they stand',
    read: () => {
      const urls = meter.standing?.().urls
      return urlStandings.map((state) => [{ state }, urls?.[state] ?? 0] as const)
    },
  })
  gauge(registry, {
    name: 'webhook_ramp_limit',
    help: 'Requests at a time that URLs on their way back bear, added up',
    read: () => plain(meter.standing?.().rampLimit ?? 0),
  })
  gauge(registry, {
    name: 'webhook_uncommitted_offsets',
    help: 'Offsets between the lowest unsettled and the highest seen one',
    read: () =>
      (meter.standing?.().partitions ?? []).map(
        ({ name, uncommitted }) => [{ partition: name }, uncommitted] as const,
      ),
  })
  gauge(registry, {
    name: 'webhook_commit_metadata_bytes',
    help: 'Bytes of the largest position written last',
    read: () => plain(meter.positionBytes),
  })
  gauge(registry, {
    name: 'webhook_partition_paused',
    help: 'Partitions that are not read on, by what they wait for',
    read: () => {
      const counts = new Map<string, number>()
      for (const { paused } of meter.standing?.().partitions ?? [])
        if (paused !== null) counts.set(paused, (counts.get(paused) ?? 0) + 1)
      return by('reason', counts)
    },
  })
}

/** Of all processes: told by the one that reads them, absent in the others. */
const addFigures = (registry: Registry, meter: Meter): void => {
  gauge(registry, {
    name: 'webhook_parked_rows',
    help: 'Messages parked, of all processes',
    read: () =>
      (meter.figures?.parked ?? []).map(({ reason, rows }) => [{ reason }, rows] as const),
  })
  const single = (name: string, help: string, read: () => number | null | undefined) =>
    gauge(registry, {
      name,
      help,
      read: () => {
        const value = read()
        return value === null || value === undefined ? [] : plain(value)
      },
    })
  single(
    'webhook_parked_oldest_seconds',
    'How long the oldest parked message has been waiting',
    () => meter.figures?.parkedOldestSeconds,
  )
  single(
    'webhook_deadline_headroom_seconds',
    'What is left to the parked message whose window ends first',
    () => meter.figures?.headroomSeconds,
  )
  single(
    'webhook_ledger_gap',
    'Messages consumed that are neither delivered, parked, dead nor in flight: never anything but 0',
    () => meter.figures?.ledgerGap,
  )
  single(
    'webhook_xmin_age_seconds',
    'How long the oldest transaction of the database has been holding back vacuum',
    () => meter.figures?.xminAgeSeconds,
  )
}

type Series = { readonly labels: Record<string, string>; readonly of: Histogram }

type Shown = {
  readonly name: string
  readonly help: string
  readonly read: () => readonly Series[]
}

const histogram = ({ name, help, read }: Shown): Metric =>
  metricOf({ name, help, type: 'histogram' }, () =>
    read().flatMap(({ labels, of }) => {
      let sum = 0
      const buckets = [...of.counts].map((count, at) => {
        sum += count
        const le = of.bounds[at] ?? '+Inf'
        return { metricName: `${name}_bucket`, labels: { ...labels, le: String(le) }, value: sum }
      })
      return [
        ...buckets,
        { metricName: `${name}_sum`, labels, value: of.sum },
        { metricName: `${name}_count`, labels, value: sum },
      ]
    }),
  )

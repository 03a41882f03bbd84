// The process's metrics in Prometheus form; stages hand in counts and know nothing of it.
import { Counter, collectDefaultMetrics, Registry } from 'prom-client'
import type { Count, CountName } from './collect/count.ts'

export type Metrics = {
  readonly contentType: string
  text(): Promise<string>
  /** What the collect stage counts. */
  readonly count: Count
}

const counted: Readonly<
  Record<CountName, { readonly help: string; readonly labels: readonly string[] }>
> = {
  'calls.accepted': { help: 'Calls appended to the log', labels: ['sourceId'] },
  'calls.changed': { help: 'Calls kept, but not exactly as they came', labels: ['flag'] },
  'calls.dropped': { help: 'Calls of disabled sources, answered 200', labels: ['sourceId'] },
  'calls.rejected': { help: 'Calls refused', labels: ['sourceId', 'code'] },
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
  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    count: (name, labels, amount) => {
      const named = Object.entries(labels).map(([label, value]) => [labelName(label), value])
      counters.get(name)?.inc(Object.fromEntries(named), amount)
    },
  }
}

const labelName = (name: string) =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

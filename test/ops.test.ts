// The alert rules and the dashboard that ship: every metric they name is really told, with the labels they use.
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { type Meter, meterAttempt, meterDeath, meterRound } from '../src/deliver/meter.ts'
import { openMetrics } from '../src/metrics.ts'

const read = (name: string) => readFile(new URL(`../ops/${name}`, import.meta.url), 'utf8')

type Rule = {
  readonly alert: string
  readonly expr: string
  readonly annotations: { readonly summary: string; readonly description: string }
}
type Panel = { readonly title: string; readonly targets: readonly { readonly expr: string }[] }

const rules = async (): Promise<readonly Rule[]> =>
  parse(await read('alerts.yaml')).groups.flatMap(({ rules }: { rules: readonly Rule[] }) => rules)
const panels = async (): Promise<readonly Panel[]> =>
  JSON.parse(await read('dashboard.json')).panels

/** Everything has happened once. */
const fill = (meter: Meter): void => {
  const phases = { dnsMs: 1, connectMs: 1, tlsMs: 1, firstByteMs: 1, totalMs: 4 }
  const result = { status: 200, durationMs: 4, head: '', phases }
  meterAttempt(meter, { ...result, answer: { type: 'delivered' }, reused: false })
  meterRound(meter, { verdict: 'delivered', isFirst: true, lagMs: 5, sinceMs: 9 })
  meterDeath(meter, 'expired')
  meter.alerts.set('given_up', 1)
  const urls = { closed: 1, open: 0, ramp: 0, rejecting: 0, held_tls: 0, disabled: 0 }
  const partitions = [{ name: 'calls/0', uncommitted: 1, paused: 'postgres' }]
  meter.standing = () => ({ urls, rampLimit: 0, lanes: 0, partitions })
  const parked = [{ reason: 'temporary', rows: 1 }]
  const ages = { parkedOldestSeconds: 1, headroomSeconds: 1, xminAgeSeconds: 1 }
  meter.figures = { ledgerGap: 0, parked, ...ages }
}

/** Of each metric told, the labels it has. */
const told = async (): Promise<ReadonlyMap<string, ReadonlySet<string>>> => {
  const metrics = openMetrics()
  fill(metrics.meter)
  metrics.archive.standing = [{ topic: 'calls', partition: 0, lag: 1, headroom: 1 }]
  metrics.rebuild.state = 'differs'
  metrics.replay.open = new Map([['running', 1]])
  const counted = {
    sourceId: 1,
    destinationId: null,
    type: 'track',
    step: 'received',
    reason: null,
  }
  metrics.countCalls(counted as Parameters<typeof metrics.countCalls>[0], 1)
  const labels = new Map<string, Set<string>>()
  for (const line of (await metrics.text()).split('\n')) {
    const [, name, inside = ''] = /^([a-z_]+)(?:\{(.*)\})? \S+$/.exec(line) ?? []
    if (name === undefined) continue
    const known = labels.get(name) ?? new Set()
    for (const [, label] of inside.matchAll(/(\w+)="/g)) known.add(label as string)
    labels.set(name, known)
  }
  return labels
}

const namesIn = (expr: string) =>
  [
    ...expr.matchAll(
      /\b((?:operator|webhook|millrace|archive|rebuild|replay)_[a-z_]+)(?:\{([^}]*)\})?/g,
    ),
  ].map(([, name = '', inside = '']) => ({
    name,
    labels: [...inside.matchAll(/(\w+)(?:=~|!=|=)/g)].map(([, label]) => label as string),
  }))

test('every metric and label in the alert rules and the dashboard is told', async () => {
  const known = await told()
  const expressions = [
    ...(await rules()).map(({ expr }) => expr),
    ...(await panels()).flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ]
  expect(expressions.length).toBeGreaterThan(25)
  for (const expr of expressions) {
    const names = namesIn(expr)
    expect([expr, names.length > 0]).toEqual([expr, true])
    for (const { name, labels } of names) {
      expect([...known.keys()], expr).toContain(name)
      for (const label of labels) expect([...(known.get(name) ?? [])], expr).toContain(label)
    }
    for (const [, list = ''] of expr.matchAll(/\bby \(([^)]*)\)/g))
      for (const label of list.split(',').map((each) => each.trim()))
        expect(
          names.some(({ name }) => known.get(name)?.has(label)),
          `${expr}: ${label}`,
        ).toBe(true)
  }
})

test('every metric of delivery has its place in the dashboard', async () => {
  const shown = new Set(
    (await panels()).flatMap(({ targets }) =>
      targets.flatMap(({ expr }) =>
        namesIn(expr).map(({ name }) => name.replace(/_(bucket|sum|count)$/, '')),
      ),
    ),
  )
  const names = [...(await told()).keys()].filter((name) => name.startsWith('webhook_'))
  const all = new Set(names.map((name) => name.replace(/_(bucket|sum|count)$/, '')))
  expect([...all].toSorted()).toEqual([
    'webhook_attempt_seconds',
    'webhook_attempts_total',
    'webhook_breaker_state',
    'webhook_commit_metadata_bytes',
    'webhook_connections_total',
    'webhook_dead_total',
    'webhook_deadline_headroom_seconds',
    'webhook_duplicate_suspected_total',
    'webhook_end_to_end_seconds',
    'webhook_first_attempt_lag_seconds',
    'webhook_ledger_gap',
    'webhook_order_suspended_total',
    'webhook_parked_oldest_seconds',
    'webhook_parked_rows',
    'webhook_partition_paused',
    'webhook_ramp_limit',
    'webhook_rounds_total',
    'webhook_uncommitted_offsets',
    'webhook_xmin_age_seconds',
  ])
  expect([...all].filter((name) => !shown.has(name))).toEqual([])
})

test('rules have names of their own and say what to do; what cannot be told is not asked for', async () => {
  const all = await rules()
  expect(new Set(all.map(({ alert }) => alert)).size).toBe(all.length)
  for (const { alert, annotations } of all)
    expect([alert, Object.values(annotations).every((text) => text.length > 20)]).toEqual([
      alert,
      true,
    ])
  expect(namesIn('sum(webhook_nothing_total{a="b"})')).toEqual([
    { name: 'webhook_nothing_total', labels: ['a'] },
  ])
})

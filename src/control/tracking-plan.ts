// Checks a source's tracking plan before it is saved: what collect could not obey is refused here.
import { setImmediate as breathe } from 'node:timers/promises'
import type { JsonObject } from '../domain/message.ts'
import type { TrackingPlan } from '../domain/tracking-plan.ts'
import { compileSchema } from '../json-schema.ts'
import { slowPattern } from './pattern.ts'
import { at, type Problem } from './problem.ts'

export const trackingPlanLimits = {
  eventsMax: 1_000,
  /** Of the whole plan as JSON. */
  bytesMax: 524_288,
  /** Told at once: a schema that cannot be obeyed may take half a second to find out. */
  problemsMax: 10,
}

export const trackingPlanProblems = async (
  plan: TrackingPlan,
  path: string,
): Promise<readonly Problem[]> => {
  const events = Object.entries(plan.events)
  const large = sizeProblem(plan, events.length)
  if (large !== null) return [{ code: 'tracking_plan_too_large', path, message: large }]
  const problems: Problem[] = []
  for (const [name, schema] of events) {
    if (problems.length >= trackingPlanLimits.problemsMax) break
    problems.push(...eventProblems(name, schema, at(at(path, 'events'), name)))
    // Compiling a thousand schemas takes a second, and others share this process.
    await breathe()
  }
  return problems
}

const sizeProblem = (plan: TrackingPlan, events: number): string | null => {
  const { eventsMax, bytesMax } = trackingPlanLimits
  if (events > eventsMax)
    return `a tracking plan has at most ${eventsMax} events, this one has ${events}`
  const bytes = Buffer.byteLength(JSON.stringify(plan))
  return bytes > bytesMax
    ? `a tracking plan has at most ${bytesMax} bytes as JSON, this one has ${bytes}`
    : null
}

const eventProblems = (name: string, schema: JsonObject, path: string): readonly Problem[] => {
  if (name === '') return [invalid(path, 'an event has a name')]
  const compiled = compileSchema(schema)
  if ('problem' in compiled) return [invalid(path, `"${name}": ${compiled.problem}`)]
  const slow = slowPattern(schema)
  return slow === null
    ? []
    : [invalid(path, `"${name}": the pattern "${slow}" takes too long over some texts`)]
}

const invalid = (path: string, message: string): Problem => ({
  code: 'tracking_plan_invalid',
  path,
  message,
})

// Tries the patterns of a schema before it is saved: one that backtracks for ever would stop a whole process.
import { createContext, Script } from 'node:vm'
import { isObject, type Json } from '../domain/message.ts'

/** For all texts tried on all patterns of one schema; a harmless one takes a millisecond for all of them. */
const trialMsMax = 500
const repetitions = 30
const samplesMax = 12
/** What classes such as `\w` and `[^,]` stand for, and what usually stands between. */
const common = 'aA0 -_.,@/:'
/** Long enough for what takes time with the cube of the length. */
const longLength = 2_048

const trial = new Script(
  'for (const pattern of patterns) for (const text of texts) pattern.test(text)',
)

/** What the trial sees: made once, for making it takes longer than most trials. */
const scene = createContext({ patterns: [] as readonly RegExp[], texts: [] as readonly string[] })

/** The first pattern that takes too long over some text, `null` when none was found. */
export const slowPattern = (schema: Json): string | null => {
  const patterns = [...new Set(patternsOf(schema))]
  return patterns.find((pattern) => isSlow(pattern)) ?? null
}

const isSlow = (pattern: string): boolean => {
  const patterns = [pattern, ...repeatedGroups(pattern).map((group) => `^${group}$`)].flatMap(
    compiled,
  )
  if (patterns.length === 0) return false
  try {
    Object.assign(scene, { patterns, texts: textsFor(pattern) })
    trial.runInContext(scene, { timeout: trialMsMax })
    return false
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return true
    throw error
  }
}

/** What does not compile is refused where schemas are compiled. */
const compiled = (pattern: string): readonly RegExp[] => {
  try {
    return [new RegExp(pattern, 'u')]
  } catch {
    return []
  }
}

/** Every pair of its characters over and over, and then something that cannot match. */
const textsFor = (pattern: string): readonly string[] => {
  const own = pattern.replaceAll(/\\.|[[\](){}|*+?^$.\\]/gu, '')
  const samples = [...new Set([...own.slice(0, samplesMax), ...common])].slice(0, samplesMax)
  const units = samples.flatMap((one) =>
    samples.map((other) => (one === other ? one : one + other)),
  )
  return [
    ...units.map((unit) => `${unit.repeat(repetitions)}\u0001`),
    ...samples.map((one) => `${one.repeat(longLength)}\u0001`),
  ]
}

/** Groups with what repeats them, alone: in its place a prefix may keep the texts tried from reaching one. */
const repeatedGroups = (pattern: string): readonly string[] => {
  const groups: string[] = []
  const opened: number[] = []
  let inClass = false
  for (let at = 0; at < pattern.length; at += 1) {
    const character = pattern[at]
    if (character === '\\') at += 1
    else if (inClass) inClass = character !== ']'
    else if (character === '[') inClass = true
    else if (character === '(') opened.push(at)
    else if (character === ')') {
      const start = opened.pop()
      const repeat = /^(?:[*+]|\{\d+,\d*\})/.exec(pattern.slice(at + 1))
      if (start !== undefined && repeat) groups.push(pattern.slice(start, at + 1) + repeat[0])
    }
  }
  return groups
}

const patternsOf = (value: Json): readonly string[] => {
  if (Array.isArray(value)) return value.flatMap(patternsOf)
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([key, inner]) => {
    if (key === 'pattern' && typeof inner === 'string') return [inner]
    const names = key === 'patternProperties' && isObject(inner) ? Object.keys(inner) : []
    return [...names, ...patternsOf(inner)]
  })
}

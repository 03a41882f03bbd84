// Patterns of `matches`: a subset of RE2's, matched in time linear in the text whatever the pattern.
import type { CharSet, Node } from './pattern-parse.ts'
import { parseNode } from './pattern-parse.ts'

type Instruction =
  | { readonly op: 'char'; readonly set: CharSet; readonly next: number }
  | { readonly op: 'split'; readonly next: number; readonly other: number }
  | { readonly op: 'start' | 'end'; readonly next: number }
  | { readonly op: 'match' }

export type Pattern = { readonly program: readonly Instruction[]; readonly start: number }

export const patternLimits = { charactersMax: 256, statesMax: 500 }

/** The pattern, or a sentence that says what was expected instead. */
export const parsePattern = (text: string): Pattern | string => {
  if (text.length > patternLimits.charactersMax)
    return `expected a pattern of at most ${patternLimits.charactersMax} characters`
  const node = parseNode(text.normalize('NFC'))
  if (typeof node === 'string') return node
  if (sizeOf(node) >= patternLimits.statesMax)
    return `expected a pattern that repeats less: it needs over ${patternLimits.statesMax} states`
  const program: Instruction[] = [{ op: 'match' }]
  const start = compile(node, 0, program)
  return { program, start }
}

const sizeOf = (node: Node): number => {
  switch (node.type) {
    case 'char':
    case 'start':
    case 'end':
      return 1
    case 'all':
      return node.of.reduce((sum, child) => sum + sizeOf(child), 0)
    case 'any':
      return node.of.reduce((sum, child) => sum + sizeOf(child) + 1, 0)
    case 'repeat':
      return (sizeOf(node.of) + 1) * Math.max(node.min + 1, node.max ?? 0)
  }
}

/** Adds what matches `node` and goes on at `next`; the place to begin at. */
const compile = (node: Node, next: number, program: Instruction[]): number => {
  const add = (instruction: Instruction) => program.push(instruction) - 1
  switch (node.type) {
    case 'char':
      return add({ op: 'char', set: node.set, next })
    case 'start':
    case 'end':
      return add({ op: node.type, next })
    case 'all':
      return node.of.reduceRight((after, child) => compile(child, after, program), next)
    case 'any':
      return node.of
        .map((child) => compile(child, next, program))
        .reduceRight((other, first) => add({ op: 'split', next: first, other }))
    case 'repeat': {
      let start = next
      if (node.max === null) {
        start = add({ op: 'split', next, other: next })
        program[start] = { op: 'split', next: compile(node.of, start, program), other: next }
      } else
        for (let times = node.min; times < node.max; times++)
          start = add({ op: 'split', next: compile(node.of, start, program), other: next })
      for (let times = 0; times < node.min; times++) start = compile(node.of, start, program)
      return start
    }
  }
}

/** Whether it matches anywhere in the text; `foldCase` takes letters of either case for one another. */
export const matches = (pattern: Pattern, text: string, foldCase: boolean): boolean => {
  const { program, start } = pattern
  const characters = Array.from(text)
  const run: Run = {
    program,
    seen: new Uint32Array(program.length),
    round: 0,
    open: [],
    reached: [],
  }
  for (let at = 0; at <= characters.length; at++) {
    run.open.push(start)
    if (closes(run, at === 0, at === characters.length)) return true
    const character = characters[at]
    if (character === undefined) return false
    const forms = foldCase ? formsOf(character) : [character.codePointAt(0) as number]
    for (const { set, next } of run.reached) if (admits(set, forms)) run.open.push(next)
  }
  return false
}

/** Code points; not what takes several letters in the other case. */
const formsOf = (character: string): readonly number[] =>
  [character, character.toLowerCase(), character.toUpperCase()]
    .filter((form) => form.length === character.length)
    .map((form) => form.codePointAt(0) as number)

type Char = Extract<Instruction, { op: 'char' }>

/** Kept from character to character: the text may be long. */
type Run = {
  readonly program: readonly Instruction[]
  /** In which round a state was reached last. */
  readonly seen: Uint32Array
  round: number
  readonly open: number[]
  /** The characters waited for. */
  reached: Char[]
}

/** Passes all that needs no character; true when that is the end of the pattern. */
const closes = (run: Run, atStart: boolean, atEnd: boolean): boolean => {
  const { program, seen, open } = run
  run.round += 1
  run.reached = []
  for (let state = open.pop(); state !== undefined; state = open.pop()) {
    if (seen[state] === run.round) continue
    seen[state] = run.round
    const instruction = program[state] as Instruction
    switch (instruction.op) {
      case 'match':
        return true
      case 'char':
        run.reached.push(instruction)
        break
      case 'split':
        if (seen[instruction.other] !== run.round) open.push(instruction.other)
        if (seen[instruction.next] !== run.round) open.push(instruction.next)
        break
      case 'start':
        if (atStart) open.push(instruction.next)
        break
      case 'end':
        if (atEnd) open.push(instruction.next)
        break
    }
  }
  return false
}

const admits = ({ negated, ranges }: CharSet, forms: readonly number[]): boolean => {
  for (const point of forms)
    for (const range of ranges) if (point >= range[0] && point <= range[1]) return !negated
  return negated
}

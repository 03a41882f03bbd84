// The words of the text form, each with the place it stands at.

export type Token = {
  readonly type: 'name' | 'string' | 'number' | 'sign' | 'end'
  /** As written; of a string what it says. */
  readonly text: string
  readonly at: number
}

export class Refusal extends Error {
  readonly at: number
  constructor(message: string, at: number) {
    super(message)
    this.at = at
  }
}

const forms = [
  ['name', /[A-Za-z_][A-Za-z0-9_]*/y],
  ['number', /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y],
  ['sign', /==|!=|>=|<=|[=><().,:[\]]/y],
] as const

const blank = /\s*/y

export const tokensOf = (text: string): readonly Token[] => {
  const tokens: Token[] = []
  let at = matchAt(blank, text, 0).length
  while (at < text.length) {
    const { token, end } = tokenAt(text, at)
    tokens.push(token)
    at = end + matchAt(blank, text, end).length
  }
  return [...tokens, { type: 'end', text: '', at }]
}

const tokenAt = (text: string, at: number): { readonly token: Token; readonly end: number } => {
  const quote = text[at]
  if (quote === "'" || quote === '"') return stringAt(text, at)
  for (const [type, form] of forms) {
    const found = matchAt(form, text, at)
    if (found !== '') return { token: { type, text: found, at }, end: at + found.length }
  }
  throw new Refusal(`expected a word, a text in quotes or a number, found "${quote}"`, at)
}

const matchAt = (form: RegExp, text: string, at: number): string => {
  form.lastIndex = at
  return form.exec(text)?.[0] ?? ''
}

const escapes: Readonly<Record<string, string>> = {
  ...{ '\\': '\\', "'": "'", '"': '"', n: '\n', t: '\t', r: '\r' },
}

const stringAt = (text: string, start: number): { readonly token: Token; readonly end: number } => {
  let said = ''
  for (let at = start + 1; at < text.length; at++) {
    const character = text[at] as string
    if (character === text[start])
      return { token: { type: 'string', text: said, at: start }, end: at + 1 }
    if (character !== '\\') {
      said += character
      continue
    }
    const code = /^u([0-9a-fA-F]{4})/.exec(text.slice(at + 1, at + 6))?.[1]
    const escaped = escapes[text[at + 1] ?? '']
    if (code === undefined && escaped === undefined)
      throw new Refusal('expected \\\\, \\\', \\", \\n, \\t, \\r or \\u0000 after a backslash', at)
    said += code === undefined ? escaped : String.fromCharCode(Number.parseInt(code, 16))
    at += code === undefined ? 1 : 5
  }
  throw new Refusal(`expected ${text[start]} at the end of the text that begins here`, start)
}

/** Read back to the same by `tokensOf`. */
export const quoted = (text: string): string => {
  let said = ''
  for (const unit of text.toWellFormed() === text ? text : text.split('')) {
    const letter = Object.keys(escapes).find((key) => escapes[key] === unit && key !== '"')
    if (letter !== undefined) said += `\\${letter}`
    else if (/^[\p{Cc}\p{Cs}]$/u.test(unit))
      said += `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
    else said += unit
  }
  return `'${said}'`
}

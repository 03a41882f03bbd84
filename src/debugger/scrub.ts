// Texts that the debugger shows, such as the names of events and keys: without what may be about a person in them.

const limits = {
  /** Of a text that is shown, in characters. */
  shownMax: 100,
  /** A longer text is hidden whole. */
  readMax: 200,
}

/** What stands for something that is not shown; its length is all that is told of it. */
export const hidden = (text: string): string => `…${text.length}`

/** The beginning tells two ids apart, and is too little to know one by. */
export const hiddenId = (text: string): string => {
  if (text.length < 4) return hidden(text)
  return `${[...readable(text.slice(0, 16))].slice(0, 2).join('')}…${text.length}`
}

/** As it is where nothing in it is anybody's; else with `…` for what is, or hidden whole. */
export const shown = (text: string): string => {
  if (text.length > limits.readMax) return hidden(text)
  // Most keys and names are a few short words, in which there is nothing to find.
  if (text.length <= 60 && /^[A-Za-z]{1,15}(?:[ _-][A-Za-z]{1,15})*$/.test(text)) return text
  const plain = readable(text)
  const scrubbed = scrub(plain)
  // Words of a snake_case or kebab-case name are words all the same.
  if (!isClean(scrubbed.replace(/[_\-+.]+/g, ' '))) return hidden(text)
  if (scrubbed.length <= limits.shownMax) return scrubbed
  return `${scrubbed.slice(0, limits.shownMax - 1).toWellFormed()}…`
}

/** A path without its query; a step that may name somebody or something of theirs is hidden. */
export const shownPath = (path: string): string => {
  if (path.length > limits.readMax) return hidden(path)
  const [steps = ''] = readable(path).split(/[?#;&=]/, 1)
  return steps
    .split('/')
    .map((step) => (step === '' || isPlainStep(step) ? step : '…'))
    .join('/')
}

const isPlainStep = (step: string): boolean =>
  /^\p{L}[\p{L}\p{M}\d_-]{0,39}(\.(html?|php|aspx?|jsp))?$/u.test(step) &&
  !/\d{3}/.test(step) &&
  isClean(step) &&
  isClean(step.replace(/[_-]+/g, ' '))

const isClean = (text: string): boolean => scrub(text) === text

/** Most names are words and nothing else: nothing to look for but a token. */
const isWords = (text: string): boolean => /^[\p{L}\p{M} _…-]*$/u.test(text)

/** One form for what looks alike, and nothing that a terminal obeys. */
const readable = (text: string): string =>
  decoded(text.toWellFormed())
    .normalize('NFKC')
    .replace(/[\t\n\r\u2028\u2029]+/g, ' ')
    .replace(/\p{C}/gu, '')

/** Twice: a redirect encodes what was encoded. */
const decoded = (text: string): string => decodedOnce(decodedOnce(text))

const decodedOnce = (text: string): string => {
  if (!/%[0-9a-f]{2}/i.test(text)) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text.replace(/%[0-9a-f]{2}/gi, (code) =>
      String.fromCharCode(Number.parseInt(code.slice(1), 16)),
    )
  }
}

const street = [
  'street|st|road|rd|avenue|ave|lane|ln|drive|dr|boulevard|blvd|way|court|ct|square|terrace|crescent|close',
  'straße|strasse|str|platz|weg|allee|gasse|ring|ufer|damm|rue|via|calle|avenida|plaza|laan|straat|gata|ulica',
].join('|')

/** What is replaced, in this order. */
const personal: readonly RegExp[] = [
  // Addresses of the web.
  /(?:[a-z][a-z0-9+.-]{1,20}:\/\/|www\.)\S*/giu,
  // E-mail addresses, however they are spelt.
  /\S*\s?@\s?\S*/gu,
  /\S+\s*[([{<]\s*at\s*[)\]}>]\s*\S+/giu,
  // What is named as a secret.
  /\b(?:bearer|token|secret|password|passwd|pwd|key|authorization|auth|sid|session)\s*[:=]\s*(?:bearer |basic )?\S+/giu,
  /\b(?:sk|pk|wk|rk|tok|ghp|gho|ghs|xox[abprs]|whsec|glpat|AKIA|ASIA|eyJ)[_\-A-Za-z0-9.]{6,}/gu,
  // Addresses of machines.
  /(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w])/gu,
  /(?<![\w:])(?:[0-9a-f]{0,4}:){2,}[0-9a-f.]*(?![\w:])/giu,
  /(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}/giu,
  /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]*/giu,
  // Postal addresses.
  new RegExp(
    `\\p{Nd}{1,5}\\p{L}?,?\\s+(?:\\p{L}[\\p{L}\\p{M}'’.-]*\\s+){0,4}(?:${street})(?![\\p{L}\\p{M}])`,
    'giu',
  ),
  new RegExp(
    `(?<![\\p{L}\\p{M}])(?:\\p{L}[\\p{L}\\p{M}'’-]*\\s?)?(?:${street})\\.?\\s+(?:\\p{L}[\\p{L}\\p{M}'’-]*\\s+){0,3}\\p{Nd}{1,5}`,
    'giu',
  ),
  // Numbers of telephones, cards, accounts and people.
  /[+(]*\p{Nd}(?:[\s().\-–—_/·:,+*]{0,3}\p{Nd}){5,}/gu,
  /[\p{L}\p{M}]*\p{Nd}{5,}[\p{L}\p{M}\p{N}]*/gu,
]

/** Tokens first: what is taken out of one would leave the rest of it. */
const scrub = (text: string): string => {
  let scrubbed = text.replace(/[^\s/,;=&?#|<>"'()[\]{}…]+/gu, (word) =>
    isToken(word) ? '…' : word,
  )
  for (const pattern of isWords(scrubbed) ? [] : personal) scrubbed = scrubbed.replace(pattern, '…')
  return scrubbed
}

/** Too long, or too mixed, to be a word that somebody wrote. */
const isToken = (word: string): boolean =>
  word.length > 60 || word.split(/[^\p{L}\p{M}\p{N}]+/u).some(isTokenPart)

const isTokenPart = (part: string): boolean => {
  if (part.length > 40) return true
  const digits = part.length - part.replace(/\p{N}/gu, '').length
  const isMixed = digits > 0 && digits < part.length
  if (isMixed && ((part.length >= 8 && digits >= 3) || part.length >= 16)) return true
  return part.length >= 16 && caseChanges(part) > part.length * 0.4
}

const caseChanges = (part: string): number => {
  let changes = 0
  let before: boolean | null = null
  for (const letter of part) {
    const isUpper = letter !== letter.toLowerCase()
    if (before !== null && before !== isUpper) changes += 1
    before = isUpper
  }
  return changes
}

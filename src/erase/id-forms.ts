// How an id may stand in a text that somebody else wrote. Pure.

/**
 * As it is and as JSON has it: some writers escape slashes, and some all that is not ASCII. Where an id has only
 * letters, digits and the like, all of it is one form.
 */
export const idForms = (id: string): readonly string[] => {
  const whole = [id, JSON.stringify(id).slice(1, -1)]
  const slashed = whole.flatMap((form) => [form, form.replaceAll('/', String.raw`\/`)])
  return [...new Set(slashed.flatMap((form) => [form, inAscii(form), inAscii(form, upperCase)]))]
}

const upperCase = (hex: string): string => hex.toUpperCase()

/** By the UTF-16 unit, as JSON has it. */
const inAscii = (text: string, write = (hex: string): string => hex): string =>
  text.replaceAll(/[^\0-\x7f]/g, (unit) => {
    const hex = unit.charCodeAt(0).toString(16).padStart(4, '0')
    return `\\u${write(hex)}`
  })

// Parameters of a statement over thousands of rows, written out faster than the driver does.

/** For `$1::bigint[]` and the like. */
export const numberList = (numbers: readonly number[]): string => `{${numbers.join(',')}}`

/** For `$1::text[]`. */
export const textList = (texts: readonly (string | null)[]): string =>
  `{${texts.map(quoted).join(',')}}`

const quoted = (text: string | null): string =>
  text === null ? 'null' : `"${/["\\]/.test(text) ? text.replace(/["\\]/g, '\\$&') : text}"`

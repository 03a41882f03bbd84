// Parameters of a statement over thousands of rows, written out faster than the driver does.

/** For `$1::bigint[]` and the like. */
export const numberList = (numbers: readonly number[]): string => `{${numbers.join(',')}}`

/** For `$1::text[]`. */
export const textList = (texts: readonly (string | null)[]): string =>
  `{${texts.map(quoted).join(',')}}`

const quoted = (text: string | null): string =>
  text === null ? 'null' : `"${/["\\]/.test(text) ? text.replace(/["\\]/g, '\\$&') : text}"`

/** For `$1::bytea[]`. */
export const bytesList = (values: readonly Uint8Array[]): string =>
  `{${values.map((bytes) => `"\\\\x${hexOf(bytes)}"`).join(',')}}`

const hexOf = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString('hex')

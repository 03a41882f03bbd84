// Finds where records end: at each newline, or in tables at each newline that stands in no quotes.

export type Bounds = { readonly bytesMax: number; readonly linesMax: number }

export type Records = {
  /** Goes on where it stopped, through the same bytes and what has been added to them. */
  scan(held: Buffer, bounds: Bounds): void
  /** Up to where whole records were found, and how many lines they take. */
  readonly end: number
  readonly lines: number
  /** No more of them fit. */
  readonly isFull: boolean
  /** After what was scanned last, a quote is not closed. */
  readonly isOpen: boolean
  /** A value went on after its closing quote. */
  readonly isMisquoted: boolean
}

const newline = 10
const quote = 34

export const openRecords = (delimiter: string | null): Records => {
  const state = { end: 0, lines: 0, isFull: false }
  const reader = delimiter === null ? newlines() : rows(delimiter.charCodeAt(0))
  return {
    get end() {
      return state.end
    },
    get lines() {
      return state.lines
    },
    get isFull() {
      return state.isFull
    },
    get isOpen() {
      return reader.isOpen()
    },
    get isMisquoted() {
      return reader.isMisquoted()
    },
    scan: (held, { bytesMax, linesMax }) => {
      while (!state.isFull) {
        const found = reader.next(held)
        if (found === null) {
          state.isFull = held.length > bytesMax && state.end > 0
          return
        }
        if (found.end > bytesMax && state.end > 0) state.isFull = true
        else if (found.end > bytesMax) return
        else {
          state.end = found.end
          state.lines += found.lines
          state.isFull = state.lines >= linesMax && held.length > found.end
          if (state.lines >= linesMax) return
        }
      }
    },
  }
}

type Found = { readonly end: number; readonly lines: number }
type Reader = { next(held: Buffer): Found | null; isOpen(): boolean; isMisquoted(): boolean }

const newlines = (): Reader => {
  let at = 0
  const next = (held: Buffer) => {
    const found = held.indexOf(newline, at)
    at = found < 0 ? held.length : found + 1
    return found < 0 ? null : { end: at, lines: 1 }
  }
  return { next, isOpen: () => false, isMisquoted: () => false }
}

type Place = 'start' | 'bare' | 'quoted' | 'closing'

const rows = (delimiter: number): Reader => {
  let at = 0
  let lines = 0
  let place: Place = 'start'
  let isMisquoted = false
  const next = (held: Buffer) => {
    for (; at < held.length; at += 1) {
      const byte = held[at]
      if (byte === newline) lines += 1
      if (byte !== newline || place === 'quoted') {
        const was = place
        place = after(was, byte, delimiter)
        if (was === 'closing' && place === 'bare') isMisquoted ||= !endsLine(held, at)
        continue
      }
      at += 1
      const found = { end: at, lines }
      lines = 0
      place = 'start'
      return found
    }
    return null
  }
  return { next, isOpen: () => place === 'quoted', isMisquoted: () => isMisquoted }
}

/** A quote opens where a value begins; two of them within quotes are one that was meant. */
const after = (place: Place, byte: number | undefined, delimiter: number): Place => {
  if (place === 'quoted') return byte === quote ? 'closing' : 'quoted'
  if (byte === delimiter) return 'start'
  return byte === quote && place !== 'bare' ? 'quoted' : 'bare'
}

const endsLine = (held: Buffer, at: number) =>
  held[at] === carriageReturn && held[at + 1] === newline

const carriageReturn = 13

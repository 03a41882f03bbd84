// Where a deliver process of the kills may die, and what it is started with.

/** Rows 1 to 5 of the failure table; 6 is the same points with claimed rows, 7 several processes. */
export const failpoints = [
  'before the request',
  'after the answer',
  'before a commit',
  'after a commit',
  'before a position',
  'after a position',
] as const

export type Failpoint = (typeof failpoints)[number]

export type ChildStart = {
  readonly databaseUrl: string
  /** Those of destinations 1, 2 and so on. */
  readonly urls: readonly string[]
  /** Dies when it comes there for the so-manieth time. */
  readonly fail: { readonly at: Failpoint; readonly times: number } | null
  /** Its clock began at this real time and runs so much faster. */
  readonly clock: { readonly from: number; readonly speed: number }
}

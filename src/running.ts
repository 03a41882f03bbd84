// What every stage is given and gives back: the clock it goes by, and how it is stopped.

export type Running = {
  /** Finishes the work in hand and resolves; calling it again waits for the same end. */
  stop(): Promise<void>
  /** Resolves after `stop`; rejects when the stage dies by itself, which must end the process. */
  readonly done: Promise<void>
}

/** Milliseconds since the epoch are derived from it; production samples database time. */
export type Clock = () => Date

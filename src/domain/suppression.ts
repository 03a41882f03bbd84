// Which calls are to be dropped because their user asked to be forgotten.

/** Whose call it is, and when it came: late calls of a deleted user are those sent before the request. */
export type Suspect = {
  readonly workspaceId: number
  readonly userId: string | null
  readonly anonymousId: string | null
  /** When the client sent it where that is known, else when it was received. */
  readonly sentAt: Date
}

/** Answers from memory; in force within 5 s of the request in every process. */
export type Suppressions = { isSuppressed(suspect: Suspect): boolean }

export const nobodySuppressed: Suppressions = { isSuppressed: () => false }

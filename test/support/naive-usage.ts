// The naive meter: counts calls and tracked users by reading a log through, sharing no code with the product.

export type Metered = {
  readonly type: string
  readonly workspaceId: number
  readonly sourceId: number
  readonly messageId: string
  readonly userId: string | null
  readonly anonymousId: string | null
  readonly previousId: string | null
  readonly receivedAt: number
}

export type Tracked = { readonly userIds: number; readonly anonymousIds: number }

const countsNobody = (id: string | null): boolean =>
  id === null || id === 'null' || id === 'anonymous' || id === '-1' || /^[0-]*$/.test(id)

/** Within one partition: the same message id of the same source, received less than a day before. */
const withoutRepeats = (log: readonly Metered[]): readonly Metered[] => {
  const kept: Metered[] = []
  const all: Metered[] = []
  for (const call of log) {
    const isRepeat = all.some(
      (before) =>
        before.workspaceId === call.workspaceId &&
        before.sourceId === call.sourceId &&
        before.messageId === call.messageId &&
        call.receivedAt - before.receivedAt < 86_400_000,
    )
    if (!isRepeat) kept.push(call)
    all.push(call)
  }
  return kept.filter(({ type }) => type !== 'delete')
}

const dateOf = (at: number) => new Date(at).toISOString()

/** From `source type day` to calls; one array of calls for each partition, in its order. */
export const callsOf = (partitions: readonly (readonly Metered[])[], workspaceId: number) => {
  const calls: Record<string, number> = {}
  for (const call of partitions.flatMap(withoutRepeats)) {
    if (call.workspaceId !== workspaceId) continue
    const name = `${call.sourceId} ${call.type} ${dateOf(call.receivedAt).slice(0, 10)}`
    calls[name] = (calls[name] ?? 0) + 1
  }
  return calls
}

/** From `2026-11` to who was seen. */
export const trackedOf = (partitions: readonly (readonly Metered[])[], workspaceId: number) => {
  const own = partitions.flatMap(withoutRepeats).filter((call) => call.workspaceId === workspaceId)
  const months = [...new Set(own.map(({ receivedAt }) => dateOf(receivedAt).slice(0, 7)))]
  return Object.fromEntries(
    months.sort().map((month) => {
      const calls = own.filter(({ receivedAt }) => dateOf(receivedAt).startsWith(month))
      return [month, trackedIn(calls)] as const
    }),
  )
}

const trackedIn = (calls: readonly Metered[]): Tracked => {
  const users = new Set(
    calls.flatMap(({ userId }) => (userId !== null && !countsNobody(userId) ? [userId] : [])),
  )
  const anonymous = new Set(
    calls.flatMap(({ anonymousId }) =>
      anonymousId !== null && !countsNobody(anonymousId) ? [anonymousId] : [],
    ),
  )
  const isTied = (id: string) =>
    calls.some(
      ({ type, userId, anonymousId, previousId }) =>
        !countsNobody(userId) && (anonymousId === id || (type === 'alias' && previousId === id)),
    )
  return { userIds: users.size, anonymousIds: [...anonymous].filter((id) => !isTied(id)).length }
}

// An episode: from when a URL begins to fail until nobody finds that it does. Operators hear of each once.

/** What one process says of it. */
export type Saying = {
  readonly owner: string
  readonly level: number
  readonly since: Date
  /** When operators were told that it fails; `null`: they were not. */
  readonly toldAt: Date | null
  readonly isAlive: boolean
}

export type Episode = {
  /** Who finds out something new. */
  readonly owner: string
  readonly sayings: readonly Saying[]
  /** When operators were last told that the URL is well, for whatever reason. */
  readonly recoveredAt: Date | null
}

/**
 * `known`: operators know it. `failing`, `recovered`: they are to be told. `left`: it is well here, and another process
 * says when it is well. `over`: it is, and nothing is to be told of it.
 */
export type Step = 'known' | 'failing' | 'recovered' | 'left' | 'over'

/** The share of failures reached `level`; 0: it recovered. */
export const stepOf = (episode: Episode, level: number): Step => {
  const { owner, sayings, recoveredAt } = episode
  if (level > 0) {
    return knownOf(episode) >= level ? 'known' : 'failing'
  }
  if (sayings.some((one) => one.owner !== owner && one.isAlive)) return 'left'
  const toldAt = toldOf(episode)
  if (toldAt === null) return 'over'
  return recoveredAt !== null && recoveredAt >= toldAt ? 'over' : 'recovered'
}

/** The highest level that operators were told of; 0: none. */
export const knownOf = ({ sayings }: Episode): number =>
  sayings.reduce((most, { toldAt, level }) => (toldAt === null ? most : Math.max(most, level)), 0)

/** When it was last told. */
export const toldOf = ({ sayings }: Episode): Date | null =>
  sayings.reduce<Date | null>(
    (last, { toldAt }) => (toldAt !== null && (last === null || toldAt > last) ? toldAt : last),
    null,
  )

/** When it began; `null`: it begins now. */
export const beginningOf = ({ sayings }: Episode): Date | null =>
  sayings.reduce<Date | null>(
    (first, { since }) => (first === null || since < first ? since : first),
    null,
  )

// What one round means: a message posted to every usable URL of a destination at once.

/** How one URL answered, in the words that decide. */
export type Answer =
  | { readonly type: 'delivered' }
  | {
      readonly type: 'temporary'
      readonly reason: string
      readonly status: number | null
      readonly retryAfterMs: number | null
    }
  | { readonly type: 'final'; readonly reason: string; readonly status: number | null }

export type Verdict =
  | { readonly type: 'delivered' }
  | {
      readonly type: 'temporary'
      readonly reason: string
      readonly status: number | null
      readonly retryAfterMs: number | null
      /** Which answers were final: later rounds leave those URLs out. */
      readonly final: readonly number[]
    }
  | { readonly type: 'final'; readonly reason: string; readonly status: number | null }

/** Any one success settles the message; one temporary failure keeps it alive. Answers are in URL order. */
export const decideRound = (answers: readonly Answer[]): Verdict => {
  if (answers.some(({ type }) => type === 'delivered')) return { type: 'delivered' }
  const final = answers.flatMap((answer, at) => (answer.type === 'final' ? [at] : []))
  const temporary = answers.filter((answer) => answer.type === 'temporary')
  const [first] = temporary
  if (first) {
    const asked = temporary.map(({ retryAfterMs }) => retryAfterMs).filter((ms) => ms !== null)
    // The URL that asks for least decides: the others' limits are their own, tried together or not at all.
    const retryAfterMs = asked.length === temporary.length ? Math.min(...asked) : null
    return { type: 'temporary', reason: first.reason, status: first.status, retryAfterMs, final }
  }
  const [worst] = answers.filter((answer) => answer.type === 'final')
  return { type: 'final', reason: worst?.reason ?? 'no_url', status: worst?.status ?? null }
}

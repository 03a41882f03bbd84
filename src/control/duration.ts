// Durations as people write them, "2h30m", and back.

const unitMs = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000 } as const

const form = /^(?=.)(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?$/

/** `null` when the text is no duration: units d, h, m and s, each at most once, in this order. */
export const parseDuration = (text: string): number | null => {
  const found = form.exec(text)
  if (!found) return null
  const [, ...counts] = found
  return Object.values(unitMs).reduce((sum, ms, at) => sum + ms * Number(counts[at] ?? 0), 0)
}

/** The shortest form `parseDuration` reads back to the same number, exact to the second. */
export const formatDuration = (ms: number): string => {
  let rest = ms
  let text = ''
  for (const [unit, size] of Object.entries(unitMs)) {
    const count = Math.floor(rest / size)
    rest -= count * size
    if (count > 0) text += `${count}${unit}`
  }
  return text === '' ? '0s' : text
}

// Waits for a real condition, with a deadline generous enough for a loaded machine.

export const until = async (
  holds: () => boolean | Promise<boolean>,
  what = `${holds}`,
  deadlineMs = 60_000,
): Promise<void> => {
  const endsAt = performance.now() + deadlineMs
  while (!(await holds())) {
    if (performance.now() > endsAt) throw new Error(`not within ${deadlineMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Waits until a figure no longer changes; `look` asks what changes it would have to go through, so that a slow machine gets longer. */
export const untilStill = async (look: () => Promise<number>, what: string): Promise<number> => {
  let [last, same] = [Number.NaN, 0]
  await until(async () => {
    const now = await look()
    same = now === last ? same + 1 : 0
    last = now
    return same >= stillLooks
  }, what)
  return last
}

const stillLooks = 40

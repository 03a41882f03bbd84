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

// Waits for a real condition, with a deadline generous enough for a loaded machine.
export const until = async (
  holds: () => boolean | Promise<boolean>,
  deadlineMs = 20_000,
): Promise<void> => {
  const endsAt = Date.now() + deadlineMs
  while (!(await holds())) {
    if (Date.now() > endsAt) throw new Error(`not true within ${deadlineMs} ms: ${holds}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

// Counts the bytes that requests in flight hold, so that overload is answered instead of stored.

export type Pressure = {
  /** One request's share; `add` answers false when the bound is exceeded, and then holds nothing more. */
  open(): Share
  held(): number
  /** What is held, and what had to be refused in the last seconds. */
  demanded(): number
  /** A request was refused that would have held so much. */
  refused(bytes: number): void
}

export type Share = {
  held(): number
  add(bytes: number): boolean
  replace(bytes: number): void
  close(): void
}

/** How long a refusal is remembered: half of it is forgotten in less. */
const rememberedMs = 10_000

export const openPressure = (bytesMax: number, nowMs = () => performance.now()): Pressure => {
  let held = 0
  let refused = 0
  let refusedAt = 0
  const lately = (now: number) => refused * Math.exp((refusedAt - now) / rememberedMs)
  const refuse = (bytes: number) => {
    const now = nowMs()
    refused = lately(now) + bytes
    refusedAt = now
  }
  return {
    held: () => held,
    demanded: () => held + lately(nowMs()),
    refused: refuse,
    open: () => {
      let own = 0
      const set = (bytes: number) => {
        held += bytes - own
        own = bytes
      }
      return {
        held: () => own,
        add: (bytes) => {
          if (held + bytes > bytesMax) {
            refuse(own + bytes)
            return false
          }
          set(own + bytes)
          return true
        },
        replace: set,
        close: () => set(0),
      }
    },
  }
}

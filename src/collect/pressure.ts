// Counts the bytes that requests in flight hold, so that overload is answered instead of stored.

export type Pressure = {
  /** One request's share; `add` answers false when the bound is exceeded, and then holds nothing more. */
  open(): Share
  held(): number
}

export type Share = { add(bytes: number): boolean; replace(bytes: number): void; close(): void }

export const openPressure = (bytesMax: number): Pressure => {
  let held = 0
  return {
    held: () => held,
    open: () => {
      let own = 0
      const set = (bytes: number) => {
        held += bytes - own
        own = bytes
      }
      return {
        add: (bytes) => {
          if (held + bytes > bytesMax) return false
          set(own + bytes)
          return true
        },
        replace: set,
        close: () => set(0),
      }
    },
  }
}

// Makes the ids of calls that came without one: UUIDv7, so that they sort by time.
import { randomFillSync } from 'node:crypto'

const poolBytes = 4_096
const idBytes = 10

/** Random bytes are drawn by the pool: a system call for each id would cost more than the id. */
export const messageIds = (epochMs: () => number): (() => string) => {
  const pool = Buffer.alloc(poolBytes)
  let used = poolBytes
  return () => {
    if (used + idBytes > poolBytes) {
      randomFillSync(pool)
      used = 0
    }
    const random = pool.toString('hex', used, used + idBytes)
    used += idBytes
    const time = epochMs().toString(16).padStart(12, '0')
    const variant = ((Number.parseInt(random.charAt(3), 16) & 0x3) | 0x8).toString(16)
    return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(7, 19)}`
  }
}

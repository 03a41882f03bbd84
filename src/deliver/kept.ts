// Which works of a committed batch were done. What became of a row is told once, however many works name it.
import type { Task, Work } from './desk.ts'
import type { Partition } from './stage.ts'

type Committed = {
  /** Partitions that were ours. */
  readonly held: ReadonlySet<Partition>
  /** Rows that are gone from Postgres by these works. */
  readonly delivered: ReadonlySet<bigint>
  readonly buried: ReadonlySet<bigint>
}

/**
 * A row whose lease ended may be claimed again while its first round goes on: two works name it then, and
 * counting it twice would make its chain look empty while another row of it waits.
 */
export const keptOf = (works: readonly Work[], committed: Committed): readonly boolean[] => {
  const delivered = new Set(committed.delivered)
  const buried = new Set(committed.buried)
  return works.map(({ task, partition }) => {
    if (!committed.held.has(partition)) return false
    const id = rowGoneBy(task)
    if (id === null) return true
    return task.type === 'delivered' ? delivered.delete(id) : buried.delete(id)
  })
}

const rowGoneBy = (task: Task): bigint | null => {
  if (task.type === 'delivered') return task.id
  return task.type === 'bury' ? task.burial.id : null
}

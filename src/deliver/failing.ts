// How much of what a URL was asked lately failed: the last 20 answers of each, in one number.

/** An operator hears when the share of failures first reaches each of these. */
export const failureLevels = [50, 70, 90, 100] as const

/** Answers looked back on, and those needed to say anything. */
const lookBack = 20
const answersMin = 5
const mask = 2 ** lookBack - 1
/** It has recovered when so little fails. */
const recoveredPercent = 20
/** URLs told apart; for a further one the destination known longest is forgotten. */
const urlsMax = 20_000

type Record = { bits: number; answers: number; level: number }

export type Failing = {
  /** The level just reached; 0: it has recovered; `null`: nothing new. */
  note(destinationId: number, url: string, isFailure: boolean): number | null
  /** Another process, which is gone, had reached it: this one says when it has recovered. */
  inherit(destinationId: number, url: string, level: number): void
}

export const openFailing = (): Failing => {
  const byDestination = new Map<number, Map<string, Record>>()
  let urls = 0
  const recordOf = (destinationId: number, url: string): Record => {
    let records = byDestination.get(destinationId)
    if (!records) {
      records = new Map()
      byDestination.set(destinationId, records)
    }
    const known = records.get(url)
    if (known) return known
    if (urls >= urlsMax) urls -= forgetOldest(byDestination, destinationId)
    urls += 1
    const record = { bits: 0, answers: 0, level: 0 }
    records.set(url, record)
    return record
  }
  return {
    note: (destinationId, url, isFailure) => noteIn(recordOf(destinationId, url), isFailure),
    inherit: (destinationId, url, level) => {
      const record = recordOf(destinationId, url)
      record.level = Math.max(record.level, level)
    },
  }
}

/** How many URLs that were; never those of the destination in hand. */
const forgetOldest = (
  byDestination: Map<number, ReadonlyMap<string, Record>>,
  destinationId: number,
): number => {
  for (const [each, records] of byDestination)
    if (each !== destinationId) {
      byDestination.delete(each)
      return records.size
    }
  return 0
}

const noteIn = (record: Record, isFailure: boolean): number | null => {
  record.answers = Math.min(lookBack, record.answers + 1)
  record.bits = ((record.bits << 1) | (isFailure ? 1 : 0)) & mask
  // The usual case: nothing fails and nothing did.
  if (record.bits === 0 && record.level === 0) return null
  if (record.answers < answersMin) return null
  const percent = (100 * countBits(record.bits)) / record.answers
  if (record.level > 0 && percent <= recoveredPercent) {
    record.level = 0
    return 0
  }
  const level = failureLevels.findLast((each) => percent >= each) ?? 0
  if (level <= record.level) return null
  record.level = level
  return level
}

const countBits = (bits: number): number => {
  let count = 0
  for (let left = bits; left !== 0; left &= left - 1) count += 1
  return count
}

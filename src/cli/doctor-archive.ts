// What `millrace doctor` finds of the archive: whether it is written, and how long the log will wait for it.
import { loadArchiveStatus } from '../archive/status.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Finding } from './doctor.ts'

/** Its owners tell of it four times a minute. */
const seenMaxMs = 120_000
/** Of what the log has, that much is not archived: retention comes close. */
const lagShareMax = 0.5

export const checkArchiveStanding = async (
  sql: Sql,
  now: Date,
): Promise<Omit<Finding, 'check'>> => {
  const partitions = await loadArchiveStatus(sql)
  const [first] = partitions
  if (first === undefined) return { state: 'ok', message: 'there is none' }
  const troubled = partitions.find(({ trouble }) => trouble !== null)
  if (troubled !== undefined)
    return {
      state: 'fail',
      message: `${troubled.topic}/${troubled.partition}: ${troubled.trouble}; see "millrace archive status"`,
    }
  const unseen = partitions.filter(
    ({ seenAt }) => seenAt === null || now.getTime() - seenAt.getTime() > seenMaxMs,
  )
  if (unseen.length > 0)
    return {
      state: 'warn',
      message: `nobody archives ${unseen.length} of ${partitions.length} partitions: start a process with the role archive, and MILLRACE_ARCHIVE`,
    }
  const lost = partitions.find(({ next, logStart }) => logStart !== null && next < logStart)
  if (lost !== undefined)
    return {
      state: 'fail',
      message: `the log let go of entries of ${lost.topic}/${lost.partition} before they were archived`,
    }
  const close = partitions.find(
    ({ next, logStart, logEnd }) =>
      logStart !== null &&
      logEnd !== null &&
      logEnd - logStart >= 1_000n &&
      Number(logEnd - next) / Number(logEnd - logStart) > lagShareMax,
  )
  if (close !== undefined)
    return {
      state: 'warn',
      message: `more than half of what the log has of ${close.topic}/${close.partition} is not archived: retention may take it; make it longer, or see why archiving is slow`,
    }
  const segments = partitions.reduce((sum, each) => sum + each.segments, 0)
  return { state: 'ok', message: `${segments} segments of ${partitions.length} partitions` }
}

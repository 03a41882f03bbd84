import { expect, test } from 'vitest'
import { isDeadReason } from '../../src/domain/dead-reason.ts'
import { classifyStatus } from '../../src/http/classify.ts'

test('of all statuses those that are final are reasons, and no others', () => {
  for (let status = 200; status <= 999; status += 1) {
    const answer = classifyStatus(status, null)
    const isFinal = answer.type === 'final'
    if (isFinal) expect(isDeadReason(answer.reason), answer.reason).toBe(true)
    expect(isDeadReason(`status_${status}`), String(status)).toBe(
      isFinal && answer.reason === `status_${status}`,
    )
  }
})

test.each(['', 'expierd', 'Expired', 'status_4040', 'status_4', 'xstatus_404', 'timeout'])(
  '%j is no reason',
  (text) => expect(isDeadReason(text)).toBe(false),
)

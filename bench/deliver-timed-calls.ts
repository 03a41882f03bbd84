// Calls that carry the instant of their append, so that their receivers know how long they took.
import type { Message } from '../src/domain/message.ts'
import { aBatch, bareMessage } from './collect-calls.ts'

/** One clock for the processes of one machine, to the microsecond. */
export const nowUs = (): number => Math.round((performance.timeOrigin + performance.now()) * 1_000)

export const stampName = '"appendedUs":'
export const stampLength = 16

const now = new Date()
const [template] = (JSON.parse(aBatch(0, now)) as { batch: [{ properties: object }] }).batch
const sentAt = now.toISOString()

/** Of the user and the source with these numbers; message ids differ as `number` does. */
export const timedCall = (number: number, at: { sourceId: number; userId: number }): Message => {
  const call = {
    ...template,
    messageId: `bench-${now.getTime()}-${number.toString(16).padStart(32, '0')}`,
    userId: `user-${at.userId}`,
    // What chains are made by.
    anonymousId: `5f1e8a3c-0d6b-4f0e-9a1d-${at.userId.toString(16).padStart(12, '0')}`,
    properties: { appendedUs: nowUs(), ...template.properties },
  }
  return { ...bareMessage(call, sentAt, Date.now()), sourceId: at.sourceId }
}

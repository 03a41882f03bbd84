// Builder for what a request says about its calls, with the flags it raised.
import type { Receipt } from '../../src/domain/normalise.ts'
import type { Flag } from '../../src/domain/rejection.ts'
import { aSource } from './configuration.ts'

export const noon = Date.parse('2026-03-01T12:00:00.000Z')

export type TestReceipt = Receipt & { readonly flags: Flag[] }

export const aReceipt = (over: Partial<Receipt> = {}): TestReceipt => {
  const flags: Flag[] = []
  return {
    source: aSource(),
    type: null,
    receivedAt: noon,
    sentAt: undefined,
    retryCount: 0,
    context: {},
    integrations: {},
    ip: '203.0.113.9',
    userAgent: 'test/1',
    messageId: () => 'made',
    flag: (flag) => flags.push(flag),
    limits: {
      callBytesMax: 32_768,
      depthMax: 64,
      propertiesMax: 10_000,
      messageIdLengthMax: 100,
      idLengthMax: 512,
    },
    flags,
    ...over,
  }
}

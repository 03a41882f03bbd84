// The log contract on the memory adapter.
import { type MemorySource, memoryLog } from '../../src/log/memory.ts'
import { logContract } from './log.contract.ts'
import type { LogHarness } from './log.harness.ts'

const makeHarness = async (): Promise<LogHarness> => {
  const log = memoryLog({ clock: () => new Date() })
  return {
    open: async () => ({ appender: log.appender(), source: log.source() }),
    crash: async ({ source }) => (source as MemorySource).vanish(),
    close: async () => undefined,
    hole: async ({ topic, partition }) => log.hole(topic, partition),
    truncate: async ({ topic, partition, before }) => log.truncate(topic, partition, before),
  }
}

// A log inside the process cannot be cut off from it.
logContract('memory', makeHarness, { cannot: ['cut'] })

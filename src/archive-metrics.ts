// The archive's metrics in Prometheus form: read from its meter when somebody asks.
import { Counter, Gauge, type Registry } from 'prom-client'
import type { ArchiveMeter } from './archive/meter.ts'

export const addArchiveMetrics = (registry: Registry, meter: ArchiveMeter): void => {
  const registers = [registry]
  const single = (name: string, help: string, read: () => number) =>
    new Gauge({
      name: `archive_${name}`,
      help,
      registers,
      collect() {
        this.set(read())
      },
    })
  /** Since the process started. */
  const rising = (name: string, help: string, read: () => number) =>
    new Counter({
      name: `archive_${name}_total`,
      help,
      registers,
      collect() {
        this.reset()
        this.inc(read())
      },
    })
  const byPartition = (name: string, help: string, read: (of: Standing) => number) =>
    new Gauge({
      name: `archive_${name}`,
      help,
      registers,
      labelNames: ['topic', 'partition'],
      collect() {
        this.reset()
        for (const standing of meter.standing) {
          const { topic, partition } = standing
          this.set({ topic, partition: String(partition) }, read(standing))
        }
      },
    })
  byPartition('lag_entries', 'Entries of the log in no segment yet', ({ lag }) => lag)
  byPartition(
    'headroom_entries',
    'Archived entries the log still has; when this is 0 or less, retention takes what is not archived',
    ({ headroom }) => headroom,
  )
  single('segments', 'Segments of the archive', () => meter.segments)
  single('bytes', 'Bytes of the segments', () => meter.bytes)
  rising('segments_written', 'Segments this process wrote', () => meter.written)
  rising('bytes_written', 'Bytes of segments this process wrote', () => meter.writtenBytes)
  rising('entries_erased', 'Entries of erased users this process removed', () => meter.erased)
  rising('failures', 'Tries of this process that failed', () => meter.failures)
  single(
    'failing_since_seconds',
    'When the failure that is not made good began, as Unix time; 0: there is none',
    () => (meter.failingSince ?? 0) / 1_000,
  )
}

type Standing = ArchiveMeter['standing'][number]

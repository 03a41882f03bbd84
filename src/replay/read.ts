// Reads a replay's spans in slices: decoded, and only the calls it selects.
import type { Message } from '../domain/message.ts'
import { isSelected, type Selection } from '../domain/replay.ts'
import { type Placed, restOf, type Span } from '../domain/replay-span.ts'
import type { Codec, History, Recorded } from '../log/log.ts'

export type Found = {
  readonly offset: number
  readonly key: string
  readonly message: Message
  /** Where it is dead at the destination, if that is what is looked for. */
  readonly dead?: readonly bigint[]
}

/** Keeps some of the calls found in a partition. */
export type Sift = (
  span: Pick<Span, 'topic' | 'partition'>,
  found: readonly Found[],
) => Promise<readonly Found[]>

export type Slice = {
  readonly span: Placed
  /** Behind the last offset of the slice. */
  readonly next: number
  readonly found: readonly Found[]
  /** Offsets the log did not have any more. */
  readonly expired: number
}

export type Reading = {
  readonly history: Pick<History, 'read'>
  readonly codec: Codec<Message>
  readonly selection: Selection
  /** `null`: all that is selected. */
  readonly sift: Sift | null
  readonly sliceMax: number
}

type Where = { readonly spans: readonly Span[]; readonly read: number }

export async function* readSlices(
  reading: Reading,
  { spans, read }: Where,
): AsyncGenerator<Slice, void> {
  for (const span of restOf(spans, read)) yield* readSpan(reading, span)
}

async function* readSpan(reading: Reading, span: Placed): AsyncGenerator<Slice, void> {
  const { topic, partition, from, until } = span
  let next = from
  const range = { topic, partition, from: BigInt(from), until: BigInt(until) }
  for await (const batch of reading.history.read(range)) {
    let expired = Math.max(0, Number(batch.from) - next)
    for (const slice of slicesOf(batch.entries, reading.sliceMax)) {
      const after = slice.after ? Number(slice.after.offset) : Number(batch.next)
      yield { span, next: after, found: await select(reading, span, slice.entries), expired }
      expired = 0
    }
    next = Number(batch.next)
  }
  if (next < until) yield { span, next: until, found: [], expired: until - next }
}

type Part = { readonly entries: readonly Recorded[]; readonly after: Recorded | undefined }

/** At least one, as what holds no entry moves the position too. */
const slicesOf = (entries: readonly Recorded[], size: number): readonly Part[] => {
  const parts: Part[] = []
  for (let at = 0; at < entries.length || at === 0; at += size)
    parts.push({ entries: entries.slice(at, at + size), after: entries[at + size] })
  return parts
}

const select = async (
  { codec, selection, sift }: Reading,
  span: Span,
  entries: readonly Recorded[],
): Promise<readonly Found[]> => {
  const messages = await codec.decode(entries.map(({ value }) => value))
  const found = messages.flatMap((message, at) => {
    if (!isSelected(selection, message)) return []
    const { offset, key } = entries[at] as Recorded
    return [{ offset: Number(offset), key, message }]
  })
  return sift === null ? found : sift(span, found)
}

/** One more is made ready while the last is worked on. */
export async function* oneAhead<T>(items: AsyncGenerator<T, void>): AsyncGenerator<T, void> {
  const ask = () => {
    const asked = items.next()
    // Looked at when its turn comes.
    asked.catch(() => undefined)
    return asked
  }
  let coming = ask()
  try {
    for (;;) {
      const { done, value } = await coming
      if (done === true) return
      coming = ask()
      yield value
    }
  } finally {
    await items.return()
  }
}

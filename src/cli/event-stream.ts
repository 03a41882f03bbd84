// Reads server-sent events of the admin API, resuming where a connection ended.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Admin, failing } from './client.ts'

export type StreamEvent = { readonly event: string; readonly data: string }

/** Between two connections, unless the server asks for another pause. */
const retryMs = 2_000
/** Of one event that has not ended yet; ours are far smaller. */
const eventLengthMax = 1_048_576

type Following = {
  readonly path: string
  readonly signal: AbortSignal
  /** Told each time a connection was lost that should have gone on. */
  readonly lost: (reason: string) => void
}

/** Ends when the signal aborts; fails when the server refuses. */
export async function* followEvents(
  { url, token }: Admin,
  { path, signal, lost }: Following,
): AsyncGenerator<StreamEvent> {
  let lastId: string | null = null
  while (!signal.aborted) {
    try {
      const response = await fetch(url + path, {
        headers: {
          authorization: `Bearer ${token}`,
          accept: 'text/event-stream',
          ...(lastId === null ? {} : { 'last-event-id': lastId }),
        },
        signal,
      })
      if (!response.ok || !response.body) throw await refusalOf(response)
      for await (const { id, ...event } of eventsIn(response.body)) {
        lastId = id ?? lastId
        if (event.event !== '') yield event
      }
    } catch (error) {
      if (signal.aborted) return
      if ((error as { failure?: unknown }).failure) throw error
      lost((error as Error).message)
    }
    await sleep(retryMs, null, { signal }).catch(() => null)
  }
}

const refusalOf = async (response: Response): Promise<Error> => {
  const { error } = (await response.json().catch(() => ({}))) as { error?: { message?: string } }
  const reason = error?.message ?? `HTTP ${response.status}`
  // A server that is overloaded or starting is worth another try.
  if (response.status >= 500) return new Error(reason)
  return failing([reason], response.status === 400 ? 2 : 1)
}

async function* eventsIn(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<StreamEvent & { readonly id: string | null }> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split('\n\n')
    rest = blocks.pop() ?? ''
    if (rest.length > eventLengthMax) throw new Error('an event has no end')
    for (const block of blocks) {
      const fields = new Map(block.split('\n').map(fieldOf))
      yield {
        id: fields.get('id') ?? null,
        event: fields.get('event') ?? '',
        data: fields.get('data') ?? '',
      }
    }
  }
}

const fieldOf = (line: string): readonly [string, string] => {
  const at = line.indexOf(': ')
  return at < 0 ? [line, ''] : [line.slice(0, at), line.slice(at + 2)]
}

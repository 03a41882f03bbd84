// A watcher of the debugger over real HTTP, and what it was told.
import { until } from '../support/until.ts'

export type Event = { readonly id: string | null; readonly event: string; readonly data: string }

export type Watcher = {
  readonly status: number
  readonly headers: Headers
  readonly events: readonly Event[]
  /** Everything as it came. */
  text(): string
  calls(): readonly Call[]
  skipped(): number
  /** Resolves when so many calls were told. */
  heard(amount: number): Promise<readonly Call[]>
  /** Resolves with true when the server ended the stream, with false when it broke. */
  readonly ended: Promise<boolean>
  close(): Promise<void>
}

export type Call = {
  readonly at: string
  readonly step: string
  readonly reason: string | null
  readonly type: string
  readonly event: string | null
  readonly messageId: string | null
  // biome-ignore lint/suspicious/noExplicitAny: tests look into calls of any form
  readonly call: any
  readonly isCut: boolean
}

type Asked = { readonly token: string; readonly lastEventId?: string }

export const watchSource = async (url: string, { token, lastEventId }: Asked): Promise<Watcher> => {
  const leaving = new AbortController()
  const response = await fetch(url, {
    headers: {
      authorization: `Bearer ${token}`,
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
    signal: leaving.signal,
  })
  let text = ''
  const events: Event[] = []
  const read = async () => {
    if (!response.body) return true
    const decoder = new TextDecoder()
    let rest = ''
    try {
      for await (const chunk of response.body) {
        const part = decoder.decode(chunk, { stream: true })
        text += part
        const blocks = (rest + part).split('\n\n')
        rest = blocks.pop() ?? ''
        events.push(...blocks.map(eventOf))
      }
      return true
    } catch {
      return false
    }
  }
  const ended = read()
  const calls = () =>
    events.filter(({ event }) => event === 'call').map(({ data }) => JSON.parse(data) as Call)
  return {
    status: response.status,
    headers: response.headers,
    events,
    text: () => text,
    calls,
    skipped: () =>
      events
        .filter(({ event }) => event === 'skipped')
        .reduce((sum, { data }) => sum + (JSON.parse(data) as { skipped: number }).skipped, 0),
    heard: async (amount) => {
      await until(() => calls().length >= amount, `${amount} calls in:\n${text.slice(-2_000)}`)
      return calls()
    },
    ended,
    close: async () => {
      leaving.abort()
      await ended
    },
  }
}

const eventOf = (block: string): Event => {
  const field = (name: string) =>
    block
      .split('\n')
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2)
  return { id: field('id') ?? null, event: field('event') ?? '', data: field('data') ?? '' }
}

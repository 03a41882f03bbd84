// `millrace destination test`: posts a sample message to each URL and tells what came back.
import type { Ask } from './client.ts'
import { failing, print } from './client.ts'
import { type Call, text } from './command.ts'

type Tested = {
  readonly results: readonly {
    readonly url: string
    readonly outcome: string
    readonly reason: string | null
    readonly status: number | null
    readonly durationMs: number
    readonly responseHead: string | null
  }[]
}

const shownMax = 60

/** 0 when every URL took it. */
export const testDestination = async (call: Call, ask: Ask, id: number): Promise<number> => {
  const type = text(call, 'type')
  if (type === '') throw failing(['--type takes a type of call'], 2)
  const answer = await ask<Tested>({
    method: 'POST',
    path: `/admin/v1/destinations/${id}/test`,
    body: type === null ? {} : { type },
  })
  print(call, answer, [
    ['URL', 'OUTCOME', 'STATUS', 'MS', 'WHY', 'ANSWER'],
    ...answer.results.map(
      ({ url, outcome, status, durationMs, reason, responseHead }) =>
        [
          url,
          outcome,
          status === null ? '-' : String(status),
          String(durationMs),
          reason ?? '-',
          (responseHead ?? '-').replaceAll(/\p{Cc}/gu, ' ').slice(0, shownMax),
        ] as const,
    ),
  ])
  return answer.results.every(({ outcome }) => outcome === 'delivered') ? 0 : 1
}

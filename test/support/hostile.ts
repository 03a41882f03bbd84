// Throws hostile bytes at a real collect stage in a process of its own, and checks what must hold after each.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Account, Urls } from './collect-child.ts'
import { openRaw, type RawAnswer, type RawConnection } from './raw-http.ts'

export type Case = {
  readonly name: string
  /** Pieces are sent one after the other, each once the one before has left. */
  readonly bytes: string | Buffer | readonly (string | Buffer)[]
  /** Every answer that comes: `200`, `400 invalid_json`, `200 rejected too_deep,unknown_type`. */
  readonly answers: readonly string[]
  /** The message ids that the log then holds, and no others; by default none. */
  readonly appended?: readonly string[]
  /** The client's own end, after its bytes. */
  readonly parting?: 'end' | 'abort'
  /** Its bytes promise more: nothing good can follow on this connection. */
  readonly isUnfinished?: boolean
  /** The stage that waits 400 ms for a request, instead of 30 s. */
  readonly at?: keyof Urls
}

export type Hostile = {
  readonly urls: () => Urls
  readonly account: () => Promise<Account>
}

const authorization = `authorization: Basic ${btoa('wk_web:')}`

/** A request with the right key and the right length, unless the headers say otherwise. */
export const post = (path: string, body: string | Buffer, headers: readonly string[] = []) =>
  raw(
    `POST ${path}`,
    [authorization, `content-length: ${Buffer.byteLength(body)}`, ...headers],
    body,
  )

export const raw = (
  asked: string,
  headers: readonly string[],
  body: string | Buffer = '',
): Buffer =>
  Buffer.concat([
    Buffer.from([`${asked} HTTP/1.1`, 'host: millrace', ...headers, '', ''].join('\r\n'), 'latin1'),
    Buffer.from(body),
  ])

export { authorization }

/** A good call as JSON text, with more written after it. */
export const aCall = (messageId: string, more = ''): string =>
  `{"type":"track","userId":"u1","event":"e","messageId":"${messageId}"${more}}`

let calls = 0
const aGoodRequest = () => {
  calls += 1
  const id = `good-${calls}`
  return { id, bytes: post('/v1/track', aCall(id)) }
}

/** What a client could tell apart, in one line. */
const told = ({ status, body, headers }: RawAnswer): string => {
  if (!/^application\/json; charset=utf-8$/.test(headers['content-type'] ?? ''))
    return `${status} ${headers['content-type']} ${body}`
  const json = JSON.parse(body) as {
    readonly code?: string
    readonly message?: string
    readonly error?: string
    readonly success?: boolean
    readonly accepted?: number
    readonly rejected?: readonly { readonly code: string }[]
  }
  if (json.code === undefined && json.rejected === undefined) return String(status)
  // Published clients read `code`, `message` and `error`; each of them one.
  if (json.code !== undefined) return json.message && json.error ? `${status} ${json.code}` : body
  return `${status} rejected ${json.rejected?.map(({ code }) => code).join()}`
}

/** What is kept by mistake ends the process, however many rounds it takes; what is let go is collected in time. */
const smallHeap = ['--max-old-space-size=128']

/** Starts the stages for a file, and asserts at its end that memory stayed within the bound. */
export const startHostile = (growthBytesMax = 128 * 1_048_576): Hostile => {
  let child: ChildProcess
  let urls: Urls
  let baseBytes = 0
  let peakBytes = 0
  const account = async () => {
    child.send({})
    const [told] = (await once(child, 'message')) as [Account]
    peakBytes = Math.max(peakBytes, told.peakBytes)
    return told
  }
  const hostile = { urls: () => urls, account }
  beforeAll(async () => {
    child = fork(new URL('./collect-child.ts', import.meta.url), [], { execArgv: smallHeap })
    const [heard] = (await once(child, 'message')) as [Urls]
    urls = heard
    await warmUp(urls)
    baseBytes = (await account()).rssBytes
    peakBytes = 0
  })
  afterAll(async () => {
    const { rssBytes } = await account()
    child.kill()
    const megabytes = (bytes: number) => (bytes / 1_048_576).toFixed(0)
    const figures = `${megabytes(baseBytes)} MB before, ${megabytes(peakBytes)} MB at its highest, ${megabytes(rssBytes)} MB at the end`
    process.stdout.write(`memory of the collect stage: ${figures}\n`)
    expect(peakBytes - baseBytes, figures).toBeLessThan(growthBytesMax)
  })
  return hostile
}

const warmUpRequests = 400

/** The heap finds its size, and code is compiled, on good calls and on large ones alike. */
const warmUp = async ({ patient, hasty }: Urls) => {
  const pad = 'x'.repeat(30_000)
  const large = `{"batch":[${Array.from({ length: 16 }, () => aCall('warm', `,"properties":{"p":"${pad}"}`)).join()}]}`
  for (const url of [patient, hasty]) {
    const connection = await openRaw(url)
    for (let at = 0; at < warmUpRequests; at += 1) {
      const isLarge = at % 4 === 0
      await connection.write(isLarge ? post('/v1/batch', large) : aGoodRequest().bytes)
      await connection.answered(at + 1)
    }
    const failed = connection.answers.filter(({ status }) => status !== 200)
    if (failed.length > 0) throw new Error(`a good call is refused: ${failed[0]?.body}`)
    connection.abort()
  }
}

/** The long form, `npm run test:hostile`, throws each case many times, and the bound on memory stays. */
const rounds = Number(process.env['HOSTILE_ROUNDS'] ?? 1)

/** A case of one answer, and what the log then holds. */
export type Row = readonly [
  name: string,
  bytes: Case['bytes'],
  answer: string,
  appended?: readonly string[],
]

const ofRow = ([name, bytes, answer, appended = []]: Row): Case => ({
  name,
  bytes,
  answers: [answer],
  appended,
})

const isRow = (of: Case | Row): of is Row => Array.isArray(of)

export const testHostile = (hostile: Hostile, cases: readonly (Case | Row)[]): void => {
  const all = cases.map((of) => (isRow(of) ? ofRow(of) : of))
  test.each(all)('$name', async (hostileCase) => {
    for (let round = 0; round < rounds; round += 1) await runCase(hostile, hostileCase)
  })
}

export const runCase = async (hostile: Hostile, hostileCase: Case): Promise<void> => {
  const { bytes, answers, appended = [], isUnfinished, at = 'patient' } = hostileCase
  const url = hostile.urls()[at]
  // What a case before it left behind is that case's failure.
  await hostile.account()
  const connection = await openRaw(url)
  for (const piece of Array.isArray(bytes) ? bytes : [bytes]) await connection.write(piece)
  if (hostileCase.parting === 'end') connection.end()
  if (hostileCase.parting === 'abort') connection.abort()
  await connection.answered(answers.length)
  const good = [await onSame(connection, isUnfinished || hostileCase.parting), await onNew(url)]
  expect(connection.answers.slice(0, answers.length).map(told)).toEqual(answers)
  // Whatever else came is an answer to nothing that was asked.
  expect(connection.answers.length).toBe(answers.length + (good[0] ? 1 : 0))
  expect(connection.rest()).toBe('')
  const known = good.filter((id) => id !== null)
  expect([...(await hostile.account()).appended].sort()).toEqual([...appended, ...known].sort())
  connection.abort()
}

/** A connection that the stage left open must be in step: its next answer is that of the next call. */
const onSame = async (connection: RawConnection, isOver: unknown) => {
  const isClosing = connection.answers.at(-1)?.headers['connection'] === 'close'
  if (isOver || isClosing || !connection.isOpen()) return null
  return answered(connection)
}

const onNew = async (url: string) => {
  const connection = await openRaw(url)
  const id = await answered(connection)
  connection.abort()
  return id
}

const answered = async (connection: RawConnection) => {
  const { id, bytes } = aGoodRequest()
  const before = connection.answers.length
  await connection.write(bytes)
  await connection.answered(before + 1)
  expect(connection.answers.slice(before).map(told), `answer to ${id}`).toEqual(['200'])
  return id
}

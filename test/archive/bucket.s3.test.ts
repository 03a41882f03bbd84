// The archive in a bucket of a real S3 server, and in front of it whatever can go wrong on the way.
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, inject, test } from 'vitest'
import type { Place } from '../../src/archive/place.ts'
import { openStore } from '../../src/archive/store.ts'
import { cloneDatabase } from '../support/database.ts'
import { s3Bucket, s3Credentials } from '../support/s3-gateway.ts'
import { openS3Proxy, type S3Fault } from '../support/s3-proxy.ts'
import { aCall, aRig, gathered, until } from './rig.ts'
import { expectSame, expectWhole, isArchived } from './whole.ts'

const { pool } = await cloneDatabase()
const { endpoint, folder } = inject('s3')
const closing: (() => Promise<unknown>)[] = []
let prefixes = 0

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** A request that is served ends in time on a machine that does much else, too. */
const quick = { requestMs: 15_000, triesMax: 3, pauseMs: 5 }
/** Where some are never answered: each of those takes so long. */
const silentMs = 3_000

const aStore = (over: Partial<Extract<Place, { type: 's3' }>> = {}, limits = quick) => {
  const prefix = `test ${++prefixes}+é/`
  const place = { type: 's3', bucket: s3Bucket, prefix, endpoint, region: 'us-east-1', ...over }
  return openStore({ place: place as Place, credentials: s3Credentials, limits })
}

test('what is put is got, listed in order with its size, and gone when it is removed', async () => {
  const store = aStore()
  const bytes = Buffer.from('a segment')
  for (const name of ['calls/0001/b', 'calls/0001/a&<', 'calls/0002/c'])
    await store.put(name, bytes)
  expect(await store.get('calls/0001/b')).toEqual(bytes)
  expect(await store.get('calls/0001/none')).toBeNull()
  expect(await gathered(store.list('calls/0001/'))).toEqual([
    { path: 'calls/0001/a&<', bytes: 9 },
    { path: 'calls/0001/b', bytes: 9 },
  ])
  await store.put('calls/0001/b', Buffer.from('anew'))
  expect(await store.get('calls/0001/b')).toEqual(Buffer.from('anew'))
  for (const again of [1, 2]) {
    expect(again).toBeGreaterThan(0)
    await store.remove('calls/0001/b')
  }
  expect(await store.get('calls/0001/b')).toBeNull()
})

test('a listing of more than a thousand goes on over its pages', async () => {
  const store = aStore()
  const names = Array.from(
    { length: 1_010 },
    (_, at) => `calls/0000/${String(at).padStart(4, '0')}`,
  )
  for (let at = 0; at < names.length; at += 20)
    await Promise.all(names.slice(at, at + 20).map((name) => store.put(name, Buffer.from('x'))))
  expect((await gathered(store.list('calls/'))).map(({ path }) => path)).toEqual(names)
})

test('wrong credentials and a bucket that is not there are refused at once, with the reason', async () => {
  const place: Place = { type: 's3', bucket: s3Bucket, prefix: '', endpoint, region: 'us-east-1' }
  const credentials = { ...s3Credentials, secretAccessKey: 'wrong' }
  const store = openStore({ place, credentials, limits: { triesMax: 1_000 } })
  await expect(store.put('a', Buffer.from('a'))).rejects.toThrow(/403 SignatureDoesNotMatch/)
  const nowhere = aStore({ bucket: 'nowhere' })
  await expect(nowhere.put('a', Buffer.from('a'))).rejects.toThrow(/404 NoSuchBucket/)
  await expect(gathered(nowhere.list(''))).rejects.toThrow('no such bucket')
})

test.each(['busy', 'silent', 'cut-request', 'cut-answer', 'cut-body'] as const)(
  '%s: a request is tried again, and so many times only',
  async (fault) => {
    const proxy = await openS3Proxy(endpoint)
    closing.push(proxy.close)
    const requestMs = fault === 'silent' ? silentMs : quick.requestMs
    const store = aStore({ endpoint: proxy.endpoint }, { ...quick, requestMs })
    await store.put('calls/a', Buffer.from('first'))
    let left = 2
    proxy.fault(() => (left-- > 0 ? fault : 'pass'))
    expect(await store.get('calls/a')).toEqual(Buffer.from('first'))
    proxy.fault(() => fault)
    const before = proxy.faults()
    await expect(store.get('calls/a')).rejects.toThrow()
    expect(proxy.faults() - before).toBeLessThanOrEqual(quick.triesMax * 2)
    proxy.fault(() => 'pass')
    expect(await store.get('calls/a')).toEqual(Buffer.from('first'))
  },
)

test('an answer that never comes ends when the stage stops', async () => {
  const proxy = await openS3Proxy(endpoint)
  closing.push(proxy.close)
  proxy.fault(() => 'silent')
  const store = aStore({ endpoint: proxy.endpoint }, { ...quick, requestMs: 600_000 })
  const stopping = new AbortController()
  const putting = store.put('a', Buffer.from('a'), stopping.signal)
  await until('it is asked', async () => proxy.faults() > 0)
  stopping.abort()
  await expect(putting).rejects.toThrow()
})

test('a stage whose store never answers stops all the same', async () => {
  const proxy = await openS3Proxy(endpoint)
  closing.push(proxy.close)
  proxy.fault(() => 'silent')
  const store = aStore({ endpoint: proxy.endpoint }, { ...quick, requestMs: 600_000 })
  const rig = await aRig(pool, store)
  const stage = rig.start({ limits: { segmentMsMax: 60_000 } })
  await rig.send(...Array.from({ length: 20 }, (_, at) => aCall({ userId: `u${at}` })))
  await until('it lists, and puts', async () => {
    rig.advance(60_000)
    return proxy.faults() > 1
  })
  await stage.stop()
}, 60_000)

test('with every kind of fault on the way nothing is lost, doubled or left over', async () => {
  const proxy = await openS3Proxy(endpoint)
  closing.push(proxy.close)
  const faults: readonly S3Fault[] = ['busy', 'silent', 'cut-request', 'cut-answer', 'cut-body']
  let isBad = true
  let requests = 0
  // Every other one, so that a request that is tried again gets through, with each kind in its turn.
  proxy.fault(() => {
    requests += 1
    return isBad && requests % 2 === 0 ? (faults[(requests / 2) % faults.length] ?? 'busy') : 'pass'
  })
  const store = aStore({ endpoint: proxy.endpoint }, { ...quick, requestMs: 1_000 })
  const rig = await aRig(pool, store)
  closing.push(rig.stop)
  rig.start({ limits: { blockBytesMax: 600, segmentBytesMax: 1_500, segmentMsMax: 60_000 } })
  await rig.send(...Array.from({ length: 400 }, (_, at) => aCall({ userId: `u${at % 9}` })))
  await until('all is archived', async () => {
    rig.advance(60_000)
    return isArchived(rig)
  })
  expect(proxy.faults()).toBeGreaterThanOrEqual(faults.length)
  isBad = false
  await expectWhole(rig)
  await until('nothing is left over', async () => {
    rig.advance(3_600_000)
    return JSON.stringify(await rig.files()) === JSON.stringify(await rig.named())
  })
  await expectSame(rig)
})

test('a segment that somebody changed in the bucket is refused', async () => {
  const rig = await aRig(pool, aStore({ prefix: 'changed/' }))
  closing.push(rig.stop)
  rig.start({ limits: { segmentMsMax: 60_000 } })
  await rig.send(...Array.from({ length: 20 }, (_, at) => aCall({ userId: `u${at}` })))
  await until('it is archived', async () => {
    rig.advance(60_000)
    return isArchived(rig)
  })
  const inside = join(folder, s3Bucket, 'changed', 'calls', '0000')
  const [file = ''] = await readdir(inside)
  const bytes = await readFile(join(inside, file))
  bytes.writeUInt8(bytes.readUInt8(9) ^ 1, 9)
  await writeFile(join(inside, file), bytes)
  const { end = 0n } = (await rig.source.bounds('calls'))[0] ?? {}
  rig.log.truncate('calls', 0, end)
  const reading = gathered(
    rig.history().read({ topic: 'calls', partition: 0, from: 0n, until: end }),
  )
  await expect(reading).rejects.toThrow('is not what was written')
})

// Duplicates as whole processes see them: by the calls' own times, across kills, restarts and rebalances.
import { afterEach, expect, test } from 'vitest'
import { postgresSource } from '../../src/log/postgres.ts'
import { cloneDatabase } from '../support/database.ts'
import {
  expectPosts,
  hour,
  minute,
  named,
  once,
  openScene,
  retryAcrossRebalances,
  type Scene,
  start,
} from './duplicates-scene.ts'

const open: Scene[] = []

afterEach(async () => {
  for (const scene of open.splice(0)) await scene.close()
})

const aScene = async () => {
  const { pool, url } = await cloneDatabase()
  const source = postgresSource({ pool })
  const ends = async () => (await source.bounds('calls')).map(({ end }) => end)
  const scene = await openScene({ databaseUrl: url, pool, ends })
  open.push({
    ...scene,
    close: async () => {
      await scene.close()
      await source.close()
    },
  })
  return scene
}

test('the same id is refused 23 h 59 min later and taken 24 h later, after kill -9 and restart', async () => {
  const scene = await aScene()
  const [retried, again] = [named('retried', 20), named('again', 20)]
  const first = await scene.start(start)
  await scene.send(first, 'web', [...retried, ...again])
  await expectPosts(scene, once(['web', retried], ['web', again]))
  await first.kill9()

  const second = await scene.start(start + 24 * hour - minute)
  const sentinels = named('sentinel', 20)
  await scene.send(second, 'web', retried)
  await scene.send(second, 'web', sentinels)
  await expectPosts(scene, once(['web', retried], ['web', again], ['web', sentinels]))
  await second.stop()

  const third = await scene.start(start + 24 * hour)
  await scene.send(third, 'web', again)
  // What was refused a minute ago is remembered from then on.
  await scene.send(third, 'web', retried)
  await scene.settled()
  const wanted = once(['web', retried], ['web', again], ['web', sentinels])
  for (const id of again) wanted.set(`web ${id}`, 2)
  await expectPosts(scene, wanted)
  expect(await scene.metered(third, start)).toMatchObject({ 'shop/web': 80 })
})

test('the same id of another source or workspace is another call', async () => {
  const scene = await aScene()
  const ids = named('id', 10)
  const first = await scene.start(start)
  for (const source of ['web', 'app', 'other', 'web', 'app', 'other'] as const)
    await scene.send(first, source, ids)
  await expectPosts(scene, once(['web', ids], ['app', ids], ['other', ids]))
  expect(await scene.metered(first, start)).toEqual({
    'shop/web': 10,
    'shop/app': 10,
    'garden/other': 10,
  })
})

test('what was taken stays refused when its partitions move to another process, and when that one is all there is', async () => {
  await retryAcrossRebalances(await aScene())
}, 900_000)

import { expect, test } from 'vitest'
import { orStopped, startAll } from './stops.ts'

const scene = () => {
  const told: string[] = []
  const part = (name: string) => async () => {
    told.push(`${name} started`)
    return async () => void told.push(`${name} stopped`)
  }
  return { told, part }
}

test('what was started is stopped as a whole', async () => {
  const { told, part } = scene()
  const stop = await startAll(part('one'), part('two'))
  expect(told).toEqual(['one started', 'two started'])
  await stop()
  expect(told.slice(2)).toEqual(['one stopped', 'two stopped'])
})

test('where one does not start the others are stopped', async () => {
  const { told, part } = scene()
  const failing = () => Promise.reject(new Error('no such server'))
  await expect(startAll(part('one'), failing, part('two'))).rejects.toThrow('no such server')
  expect(told.slice(2)).toEqual(['one stopped', 'two stopped'])
})

test('where one does not stop the others do, and it is said', async () => {
  const { told, part } = scene()
  const lasting = async () => () => Promise.reject(new Error('it hangs'))
  const stop = await startAll(lasting, part('two'))
  await expect(stop()).rejects.toThrow('it hangs')
  expect(told).toEqual(['two started', 'two stopped'])
})

test('a start that fails is undone', async () => {
  const told: string[] = []
  const undo = async () => void told.push('undone')
  await expect(orStopped(undo, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(told).toEqual(['undone'])
  expect(await orStopped(undo, async () => 'well')).toBe('well')
  expect(told).toEqual(['undone'])
})

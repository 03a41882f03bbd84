import { expect, test } from 'vitest'
import { openOutstanding } from '../../src/replay/outstanding.ts'

test('nothing is sent before the first look, and then no more than there is room for', () => {
  const outstanding = openOutstanding(40)
  expect(outstanding.room()).toBe(0)
  outstanding.look()
  outstanding.see(10)
  expect(outstanding.room()).toBe(30)
  outstanding.add(30)
  expect(outstanding.room()).toBe(0)
})

test('what is not in the row yet when a look begins is outstanding beside what it finds', () => {
  const outstanding = openOutstanding(40)
  outstanding.look()
  outstanding.see(0)
  outstanding.add(20)
  outstanding.save(20)
  outstanding.add(10)
  outstanding.look()
  // While the look is under way one more is given to the log, and all is saved.
  outstanding.add(5)
  outstanding.save(15)
  outstanding.see(20)
  expect(outstanding.room()).toBe(5)
  outstanding.look()
  outstanding.see(35)
  expect(outstanding.room()).toBe(5)
  outstanding.look()
  outstanding.see(0)
  expect(outstanding.room()).toBe(40)
})

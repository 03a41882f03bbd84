import { describe, expect, test } from 'vitest'
import { paceLimits, pauseOf, type Signs, shareOf } from '../../src/import/pace.ts'

const calm: Signs = { livePerSecond: 100, liveLag: 0, importLag: 0, loopDelayMs: 1 }

const looked = (share: number, looks: number, signs: Partial<Signs>) => {
  let now = share
  for (let look = 0; look < looks; look += 1) now = shareOf(now, { ...calm, ...signs })
  return now
}

describe('the pace of imports', () => {
  test('is all of the time while there are no live calls', () => {
    expect(shareOf(0.02, { ...calm, livePerSecond: 0, loopDelayMs: 500 })).toBe(1)
    expect(pauseOf(1, 400)).toBe(0)
  })

  test('leaves live calls most of the time, from the first look on', () => {
    expect(looked(1, 1, {})).toBe(paceLimits.shareMax)
    expect(pauseOf(0.25, 100)).toBe(300)
  })

  test.each([{ liveLag: 201 }, { loopDelayMs: 16 }])(
    'yields to pressure and comes back: %j',
    (signs) => {
      const pressed = looked(1, 1, signs)
      expect(pressed).toBe(paceLimits.shareMax / 2)
      expect(looked(pressed, 20, signs)).toBe(paceLimits.shareMin)
      expect(looked(paceLimits.shareMin, 20, {})).toBe(paceLimits.shareMax)
    },
  )

  test('waits for a reader that is too far behind with imports', () => {
    const share = looked(1, 1, { importLag: paceLimits.importLagMax + 1, livePerSecond: 0 })
    expect(share).toBe(0)
    expect(pauseOf(share, 1)).toBe(paceLimits.waitMsMax)
    expect(looked(share, 1, {})).toBeGreaterThan(0)
  })
})

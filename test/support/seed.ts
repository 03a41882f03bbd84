// One seed for all that a run makes at random: SEED=N repeats it. vitest.config.ts chooses one where none is given.

export const seedOf = (given: string | undefined): number => {
  if (given === undefined || !/^\d{1,9}$/.test(given))
    throw new Error(`SEED is a whole number of at most nine digits, not ${given}`)
  return Number(given)
}

export const seed = seedOf(process.env['SEED'])

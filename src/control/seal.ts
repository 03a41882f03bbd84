// At every start: what the configuration keeps secret is sealed with the current key, all of it or nothing.
import type { Pool } from '../postgres/sql.ts'
import { findUnsealed, loadDestinations, updateDestination } from './destination-store.ts'
import type { Keyring } from './secret.ts'
import { lockConfiguration } from './state.ts'

export type Sealing = {
  /** Destinations sealed now: they were not, or with another key. */
  readonly sealed: number
  /** Destinations left as they are, because there is no key. */
  readonly unsealed: number
}

/** Opens every secret on the way, so that a start with the wrong key ends here and says so. */
export const sealSecrets = (pool: Pool, keyring: Keyring): Promise<Sealing> =>
  pool.transaction(async (tx) => {
    await lockConfiguration(tx)
    const destinations = await loadDestinations(tx, keyring)
    const unsealed = new Set(await findUnsealed(tx, keyring))
    if (keyring.current === null) return { sealed: 0, unsealed: unsealed.size }
    for (const destination of destinations)
      if (unsealed.has(destination.id)) await updateDestination(tx, destination, keyring)
    return { sealed: unsealed.size, unsealed: 0 }
  })

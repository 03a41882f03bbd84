// Beginning a rebuild: the schema it folds into, and where each partition's past begins.
import { Fault } from '../fault.ts'
import { bumpPlan, readPlanRow } from '../project/build-store.ts'
import { type RebuildDeps, topics } from './deps.ts'
import { makeSchema, schemaOf } from './schema.ts'
import { isBuilding, type Rebuild, seedPositions, tellWaiting, turnRebuild } from './store.ts'
import { findTables } from './tables.ts'

/** All or nothing, so that a schema that is there is whole. Waits while audiences are being built. */
export const begin = async (deps: RebuildDeps, rebuild: Rebuild): Promise<'begun' | 'waits'> => {
  const starts = await startsOf(deps, rebuild)
  return deps.pool.transaction(async (tx) => {
    // Whoever is about to open a build is outrun by this, and sees the rebuild when it tries again.
    await bumpPlan(tx, await readPlanRow(tx))
    if (await isBuilding(tx)) {
      await tellWaiting(tx, rebuild.id, 'an audience is being built')
      return 'waits'
    }
    const { swapped, scratch } = await findTables(tx)
    const schema = schemaOf(rebuild.id)
    await makeSchema(tx, { schema, tables: [...swapped, ...scratch] })
    await seedPositions(tx, schema, starts)
    await turnRebuild(tx, { id: rebuild.id, from: 'requested', to: 'folding' })
    return 'begun'
  })
}

const startsOf = async ({ history }: RebuildDeps, { fromKept }: Rebuild) => {
  const starts = (
    await Promise.all(
      topics.map(async (topic) =>
        (await history.bounds(topic)).map(({ start }, partition) => ({ topic, partition, start })),
      ),
    )
  ).flat()
  const cut = starts.filter(({ start }) => start > 0n)
  const [first] = cut
  if (first !== undefined && !fromKept)
    throw new Fault(
      'log_gap',
      `the log begins at offset ${first.start} of ${first.topic}/${first.partition}, and no archive has what was before: users would lose that part of their history; to rebuild from what is kept all the same, say --from-kept`,
    )
  return starts
}

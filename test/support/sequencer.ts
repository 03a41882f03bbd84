// The order in which vitest starts files, which is its own but for the ones that take longest.
import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { inOrder } from './long-first.ts'

export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config
    const byProject = Map.groupBy(await super.sort(files), ({ project }) => project.name)
    // One project after the other, as ever.
    return [...byProject.values()].flatMap((own) =>
      inOrder(own, ({ moduleId }) => relative(root, moduleId)),
    )
  }
}

// Processes of the delivery benches: started, asked one thing after the other, and ended together.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { nodeFlags } from './node-flags.ts'

export type Child = {
  ask<T>(question: object): Promise<T>
}

export type Processes = {
  /** Starts a file of this folder; resolves with the child and the first thing it says. */
  start<T>(file: string, args?: readonly string[]): Promise<readonly [Child, T]>
  end(): Promise<void>
}

export const openProcesses = (): Processes => {
  const children: ChildProcess[] = []
  return {
    start: async <T>(file: string, args: readonly string[] = []) => {
      const child = fork(new URL(file, import.meta.url), args, { execArgv: [...nodeFlags] })
      children.push(child)
      return [childOf(child), await heard<T>(child)] as const
    },
    end: async () => {
      const ended = children.map((child) => child.exitCode ?? once(child, 'exit'))
      for (const child of children) if (child.connected) child.disconnect()
      await Promise.all(ended)
    },
  }
}

const childOf = (child: ChildProcess): Child => ({
  ask: async <T>(question: object) => {
    const answer = heard<T>(child)
    child.send(question)
    return answer
  },
})

const heard = async <T>(child: ChildProcess): Promise<T> => {
  const controller = new AbortController()
  const { signal } = controller
  const died = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`a process of the bench ended with ${code}`)
  })
  died.catch(() => undefined)
  const [message] = (await Promise.race([once(child, 'message', { signal }), died])) as [T]
  controller.abort()
  const { error } = message as { error?: string }
  if (error) throw new Error(error)
  return message
}

/** The other side: answers each question, errors included, and ends with the bench. */
export const answerParent = <Q>(answer: (question: Q) => Promise<object> | object): void => {
  process.on('disconnect', () => process.exit(0))
  process.on('message', async (question: Q) => {
    try {
      process.send?.(await answer(question))
    } catch (error) {
      process.send?.({ error: error instanceof Error ? error.stack : String(error) })
    }
  })
}

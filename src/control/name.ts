// Names of workspaces, sources, destinations and audiences: what they may be, and that each is its own.
import { at, type Problem } from './problem.ts'

const charactersMax = 200

type Named = { readonly id: number; readonly name: string }

type Wish = {
  readonly name: string
  /** The entity's own id when it exists: its present name is not taken. */
  readonly id: number | null
  /** The others of its kind in the workspace. */
  readonly others: Iterable<Named>
  readonly kind: string
}

export const nameProblems = (wish: Wish, path: string): readonly Problem[] => {
  const { name, kind } = wish
  const here = at(path, 'name')
  if (name.trim() !== name || name === '' || [...name].length > charactersMax || !isText(name))
    return [
      {
        code: 'name_invalid',
        path: here,
        message: `a name has 1 to ${charactersMax} characters, no control characters, and no space at either end`,
      },
    ]
  for (const other of wish.others)
    if (other.name === name && other.id !== wish.id)
      return [
        { code: 'name_taken', path: here, message: `there is already a ${kind} named "${name}"` },
      ]
  return []
}

/** Text Postgres can hold and an HTTP header or a log line can show. */
export const isText = (text: string): boolean => text.isWellFormed() && !/\p{Cc}/u.test(text)

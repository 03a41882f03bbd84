// Reads the call out of a pixel's query and answers the image, whatever became of the call.
import type { Json } from '../../domain/message.ts'
import type { Answer } from './answer.ts'

/** One transparent dot: 43 bytes. */
const image = Buffer.from('R0lGODlhAQABAIAAAAAAAAAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==', 'base64')

export const pixelAnswer: Answer = {
  status: 200,
  body: image,
  headers: { 'content-type': 'image/gif', 'cache-control': 'no-store' },
}

/** The call as the JSON text a POST would have had. */
export const callOfQuery = (query: URLSearchParams, depthMax: number): Buffer => {
  const data = query.get('data')
  // A plus sign of base64 reads as a space when the page did not escape it.
  if (data !== null) return Buffer.from(data.replaceAll(' ', '+'), 'base64')
  return Buffer.from(JSON.stringify(nested(query, depthMax)))
}

type Tree = { [key: string]: Json | Tree }

/** `properties.subject=x` is `{"properties":{"subject":"x"}}`; of two under one name the last stands. */
const nested = (query: URLSearchParams, depthMax: number): Tree => {
  const tree = emptyTree()
  for (const [name, value] of query) {
    if (name === 'writeKey') continue
    // Deeper than any call may be, so that judging the call says so.
    const path = name.split('.', depthMax + 2)
    const last = path.pop() as string
    const isSwitch = path.length === 1 && path[0] === 'integrations'
    branch(tree, path)[last] = isSwitch ? switched(value) : value
  }
  return tree
}

/** As text it would say nothing, and the call would go where its page said it must not. */
const switched = (value: string): Json => {
  if (value === 'false') return false
  return value === 'true' ? true : value
}

const branch = (tree: Tree, path: readonly string[]): Tree => {
  let at = tree
  for (const key of path) {
    const next = at[key]
    const child = typeof next === 'object' ? (next as Tree) : emptyTree()
    at[key] = child
    at = child
  }
  return at
}

/** Without a prototype a key called `__proto__` is a key like any other. */
const emptyTree = () => Object.create(null) as Tree

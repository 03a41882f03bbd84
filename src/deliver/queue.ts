// A first-in first-out queue whose shift does not move what stays.

export type Queue<T> = { push(item: T): void; shift(): T | undefined; size(): number }

export const openQueue = <T>(): Queue<T> => {
  let items: T[] = []
  let head = 0
  return {
    push: (item) => {
      items.push(item)
    },
    shift: () => {
      if (head >= items.length) return undefined
      const item = items[head]
      head += 1
      if (head >= 1_024 && head * 2 >= items.length) {
        items = items.slice(head)
        head = 0
      }
      return item
    },
    size: () => items.length - head,
  }
}

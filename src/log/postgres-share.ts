// Which partitions a member of a group should take or give back: every member decides for itself,
// and all come to the same shares. Pure.
import type { Place, Topic } from './log.ts'

export type OwnedPlace = Place & { readonly owner: number | null }

export type Seen = {
  readonly me: number
  readonly members: readonly { readonly number: number; readonly topics: readonly Topic[] }[]
  readonly places: readonly OwnedPlace[]
}

export type Share = { readonly claim: readonly Place[]; readonly release: readonly Place[] }

export const share = (seen: Seen): Share => {
  const topics = seen.members.find(({ number }) => number === seen.me)?.topics ?? []
  const shares = topics.map((topic) => shareOf(topic, seen))
  return {
    claim: shares.flatMap(({ claim }) => claim),
    release: shares.flatMap(({ release }) => release),
  }
}

/** Of `total` partitions the first `total mod members` members, by number, hold one more. */
const shareOf = (topic: Topic, { me, members, places }: Seen): Share => {
  const numbers = members
    .filter((member) => member.topics.includes(topic))
    .map(({ number }) => number)
    .sort((a, b) => a - b)
  const all = places
    .filter((place) => place.topic === topic)
    .sort((a, b) => a.partition - b.partition)
  const extra = numbers.indexOf(me) < all.length % numbers.length ? 1 : 0
  const target = Math.floor(all.length / numbers.length) + extra
  const mine = all.filter(({ owner }) => owner === me)
  const free = all.filter(({ owner }) => owner === null)
  return {
    claim: free.slice(0, Math.max(0, target - mine.length)),
    release: mine.slice(target),
  }
}

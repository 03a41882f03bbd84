// Whether a message is of somebody who is not to be heard: asked of what the service made when it is taken,
// and of what was parked at each try. That a user was deleted is always told.
import { isObject, type Json, type Outbound } from '../domain/message.ts'
import { nobodySuppressed } from '../domain/suppression.ts'
import type { Delivery, Stage } from './stage.ts'

export const isMadeInVain = ({ deps }: Stage, made: Outbound): boolean => {
  const { suppressions = nobodySuppressed } = deps
  if (made.type === 'delete') return false
  const { workspaceId, userId, timestamp } = made
  return suppressions.isSuppressed({
    ...{ workspaceId, userId, anonymousId: null },
    sentAt: new Date(timestamp),
  })
}

export const isForgotten = ({ deps }: Stage, delivery: Delivery, workspaceId: number): boolean => {
  const { suppressions = nobodySuppressed } = deps
  if (suppressions === nobodySuppressed || delivery.row === null || delivery.type === 'delete')
    return false
  const message = readJson(delivery.body)
  const text = (field: string) => {
    const value = isObject(message) ? message[field] : null
    return typeof value === 'string' ? value : null
  }
  return suppressions.isSuppressed({
    workspaceId,
    userId: text('userId') ?? text('User ID'),
    anonymousId: text('anonymousId'),
    previousId: text('Previous ID'),
    sentAt: new Date(delivery.receivedAt),
  })
}

const readJson = (body: Buffer): Json => {
  try {
    return JSON.parse(body.toString('utf8')) as Json
  } catch {
    return null
  }
}

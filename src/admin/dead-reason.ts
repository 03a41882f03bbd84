// How a request names why messages were given up: a word that means nothing is refused, not looked for.
import Type from 'typebox'
import { type DeadReason, deadReasons, deadStatusPattern } from '../domain/dead-reason.ts'

export const deadReason = Type.Unsafe<DeadReason>(
  Type.Union([
    ...deadReasons.map((reason) => Type.Literal(reason)),
    Type.String({ pattern: deadStatusPattern }),
  ]),
)

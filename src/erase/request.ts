// What a deletion request is: its kinds, its states, and what each kind means for an id. Pure.
import type { IdentityKind } from '../domain/identity.ts'

export const requestKinds = [
  'suppress_only',
  'unsuppress',
  'delete_only',
  'suppress_with_delete',
] as const

export type RequestKind = (typeof requestKinds)[number]

export const requestStates = ['received', 'running', 'finished', 'failed'] as const

export type RequestState = (typeof requestStates)[number]

export const requestLimits = {
  idsMax: 5_000,
  idLengthMax: 512,
  /** Of all workspaces: each costs every process 50 bytes at the most. */
  suppressionsMax: 2_000_000,
}

/** Whether its users are erased, beside being heard or not. */
export const erases = (kind: RequestKind): boolean =>
  kind === 'delete_only' || kind === 'suppress_with_delete'

export type Subject = {
  readonly n: number
  readonly kind: IdentityKind
  readonly value: string
  /** Of the same profile as an id that was asked for. */
  readonly found: boolean
}

type Meant = { readonly suppressed: boolean | null; readonly deletedBefore: Date | null }

/**
 * What becomes of an id: only those asked for are suppressed for good, while late calls of all ids of the
 * profile are dropped. `suppressed` null leaves it as it was.
 */
export const meantFor = (
  kind: RequestKind,
  { found }: Pick<Subject, 'found'>,
  createdAt: Date,
): Meant => {
  switch (kind) {
    case 'suppress_only':
      return { suppressed: true, deletedBefore: null }
    case 'unsuppress':
      return { suppressed: false, deletedBefore: null }
    case 'delete_only':
      return { suppressed: null, deletedBefore: createdAt }
    case 'suppress_with_delete':
      return { suppressed: found ? null : true, deletedBefore: createdAt }
  }
}

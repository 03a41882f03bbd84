// Bearer tokens of the admin API: made here, kept as hashes, each with a role.
import type { Sql } from '../postgres/sql.ts'
import { hashOf, newAdminToken } from './credential.ts'

export const roles = ['admin', 'viewer'] as const
export type Role = (typeof roles)[number]

export type Token = {
  readonly id: number
  readonly name: string
  readonly role: Role
  readonly createdAt: Date
}

const columns = 'id, name, role, created_at as "createdAt"'

export const findToken = async (sql: Sql, secret: string): Promise<Token | null> => {
  const { rows } = await sql.query<Token>(`select ${columns} from admin_token where hash = $1`, [
    hashOf(secret),
  ])
  return rows[0] ?? null
}

export const loadTokens = async (sql: Sql): Promise<readonly Token[]> => {
  const { rows } = await sql.query<Token>(`select ${columns} from admin_token order by id`)
  return rows
}

/** `null` when the name is taken; otherwise the token itself, which is shown this once. */
export const insertToken = async (
  sql: Sql,
  token: { readonly name: string; readonly role: Role; readonly secret?: string },
): Promise<{ readonly token: Token; readonly secret: string } | null> => {
  const secret = token.secret ?? newAdminToken()
  const { rows } = await sql.query<Token>(
    `insert into admin_token (name, role, hash) values ($1, $2, $3)
     on conflict (name) do nothing returning ${columns}`,
    [token.name, token.role, hashOf(secret)],
  )
  return rows[0] ? { token: rows[0], secret } : null
}

export const deleteToken = async (sql: Sql, id: number): Promise<void> => {
  await sql.query('delete from admin_token where id = $1', [id])
}

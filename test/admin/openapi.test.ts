import { readFile } from 'node:fs/promises'
import { Compile } from 'typebox/compile'
import { describe, expect, test } from 'vitest'
import { routesOf } from '../../src/admin/admin.ts'
import { errorStatus } from '../../src/admin/answer.ts'
import type { AdminDeps } from '../../src/admin/deps.ts'
import { problemStatus } from '../../src/control/problem.ts'
import { startTestAdmin } from './start.ts'

type Operation = {
  readonly operationId: string
  readonly parameters: readonly { name: string; in: string; required: boolean; schema: object }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { schema: object }>> }
  readonly responses: Readonly<Record<string, { description: string; content?: object }>>
  readonly security?: readonly object[]
}

describe('the OpenAPI document', async () => {
  const { nobody, admin } = await startTestAdmin({ version: '1.2.3' })
  const document = (await nobody('GET', '/admin/v1/openapi.json')).body
  const operations = Object.entries<Record<string, Operation>>(document.paths).flatMap(
    ([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )

  test('is 3.1 and covers every route, and nothing else', () => {
    expect(document.openapi).toBe('3.1.0')
    expect(document.info).toMatchObject({ title: 'Millrace admin API', version: '1.2.3' })
    const served = routesOf({} as AdminDeps).map(
      ({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`,
    )
    expect(
      operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`).toSorted(),
    ).toEqual(served.toSorted())
    expect(served.length).toBeGreaterThan(30)
  })

  test('has what OpenAPI 3.1 asks of every operation', () => {
    const ids = operations.map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
    for (const { path, method, operation } of operations) {
      const inPath = operation.parameters.filter((parameter) => parameter.in === 'path')
      const wanted = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      expect([path, inPath.map(({ name }) => name)]).toEqual([path, wanted])
      expect(inPath.every(({ required }) => required)).toBe(true)
      expect(Object.keys(operation.responses).length).toBeGreaterThan(1)
      for (const [status, { description }] of Object.entries(operation.responses)) {
        expect(status).toMatch(/^([2-5]\d\d|default)$/)
        expect(description).toEqual(expect.any(String))
      }
      expect(method === 'get' ? operation.requestBody : undefined).toBeUndefined()
    }
  })

  test('every reference leads somewhere, and every schema is one a validator takes', () => {
    const text = JSON.stringify(document)
    for (const [, name] of text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g))
      expect(Object.keys(document.components.schemas)).toContain(name)
    for (const schema of Object.values<object>(document.components.schemas))
      expect(() => Compile(schema as never).Check({})).not.toThrow()
  })

  test('tells which routes are open', () => {
    const open = operations.filter(({ operation }) => operation.security?.length === 0)
    expect(open.map(({ path }) => path).toSorted()).toEqual([
      '/admin/v1/openapi.json',
      '/healthz',
      '/metrics',
      '/readyz',
    ])
    expect(document.components.securitySchemes.bearer).toEqual({ type: 'http', scheme: 'bearer' })
  })

  test('describes answers as they are', async () => {
    await admin('POST', '/admin/v1/workspaces', { name: 'shop' })
    const made = [
      ['Workspace', await admin('GET', '/admin/v1/workspaces/1')],
      ['SavedSource', await admin('POST', '/admin/v1/sources', { name: 'a', class: 'web' })],
      ['Source', await admin('GET', '/admin/v1/sources/1')],
      [
        'Destination',
        await admin('POST', '/admin/v1/destinations', {
          name: 'a',
          webhooks: [{ url: 'http://a.test', headers: { a: 'b' } }],
        }),
      ],
      [
        'Audience',
        await admin('POST', '/admin/v1/audiences', {
          name: 'a',
          where: { trait: 'a', op: 'eq', value: 1 },
        }),
      ],
      ['Sync', await admin('POST', '/admin/v1/sync?wait=false')],
      ['NewToken', await admin('POST', '/admin/v1/tokens', { name: 'x', role: 'viewer' })],
      ['Error', await admin('POST', '/admin/v1/tokens', {})],
      ['Applied', await admin('POST', '/admin/v1/apply', { workspaces: [{ name: 'shop' }] })],
    ] as const
    for (const [name, answer] of made) {
      const schema = inline(document.components.schemas[name], document.components.schemas)
      expect([name, [...Compile(schema as never).Errors(answer.body)]]).toEqual([name, []])
    }
  })
})

const inline = (schema: unknown, components: Record<string, unknown>): unknown => {
  if (Array.isArray(schema)) return schema.map((part) => inline(part, components))
  if (typeof schema !== 'object' || schema === null) return schema
  const { $ref } = schema as { $ref?: string }
  if ($ref) return inline(components[$ref.split('/').at(-1) ?? ''], components)
  return Object.fromEntries(
    Object.entries(schema).map(([key, part]) => [key, inline(part, components)]),
  )
}

test('every error code is documented, and nothing else is', async () => {
  const text = await readFile(new URL('../../docs/admin-api.md', import.meta.url), 'utf8')
  const documented = [...text.matchAll(/^\| `(\w+)` \| (\d{3}) \|/gm)].map(
    ([, code, status]) => `${code} ${status}`,
  )
  const known = Object.entries({ ...errorStatus, ...problemStatus }).map(
    ([code, status]) => `${code} ${status}`,
  )
  expect(documented.toSorted()).toEqual(known.toSorted())
})

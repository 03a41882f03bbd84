// The dashboard's files, as they are in the folder of that name: open to all, for they hold nothing; its calls need a token.
import { readFile } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'

const folder = new URL('../../dashboard/', import.meta.url)

const types = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
} as const

/** By the path each is asked for at. */
const files: readonly (readonly [string, `${string}.${keyof typeof types}`])[] = [
  ['/', 'index.html'],
  ...(['main.js', 'api.js', 'card.js', 'job.js', 'jobs.js', 'style.css', 'icon.svg'] as const).map(
    (name) => [`/dashboard/${name}`, name] as const,
  ),
]

const headers = {
  // The tab keeps a token: nothing foreign may run in it, frame it, or be told of it.
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
}

export const addPages = (app: FastifyInstance): void => {
  for (const [path, name] of files) {
    const type = types[name.slice(name.lastIndexOf('.') + 1) as keyof typeof types]
    app.get(path, async (_request, reply) =>
      reply
        .headers(headers)
        .type(type)
        .send(await readFile(new URL(name, folder))),
    )
  }
}

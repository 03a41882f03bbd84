// The open routes: health, metrics and the OpenAPI document.
import Type from 'typebox'
import { AnyObject } from '../control/schema.ts'
import { failure, ok } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { named } from './views.ts'

const HealthView = named('Health', { status: Type.Literal('ok') })
const health = { description: 'It is.', schema: HealthView }

export const operationRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path: '/healthz',
    operation: 'isAlive',
    summary: 'Whether the process answers at all',
    access: 'open',
    answers: { 200: health },
    handle: async () => ok({ status: 'ok' }),
  }),
  route({
    method: 'GET',
    path: '/readyz',
    operation: 'isReady',
    summary: 'Whether Postgres answers and the stages of this process are up',
    access: 'open',
    answers: { 200: health, 503: { description: 'Not now.' } },
    handle: async () => {
      await deps.pool.query('select 1')
      const isReady = (await deps.isReady?.()) ?? true
      return isReady ? ok({ status: 'ok' }) : failure('not_ready', 'a stage is not up')
    },
  }),
  route({
    method: 'GET',
    path: '/metrics',
    operation: 'readMetrics',
    summary: 'Metrics in Prometheus form',
    access: 'open',
    answers: { 200: { description: 'The metrics.', contentType: 'text/plain' } },
    handle: async () => ({
      status: 200,
      body: (await deps.metrics?.text()) ?? '',
      contentType: deps.metrics?.contentType ?? 'text/plain; version=0.0.4; charset=utf-8',
    }),
  }),
]

export const documentRoute = (document: () => unknown): Route =>
  route({
    method: 'GET',
    path: '/admin/v1/openapi.json',
    operation: 'readDocument',
    summary: 'This document',
    access: 'open',
    answers: { 200: { description: 'OpenAPI 3.1.', schema: AnyObject } },
    handle: async () => ok(document()),
  })

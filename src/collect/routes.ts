// The paths of the collect stage: what each takes, and which methods it answers.
import type { CallType } from '../domain/message.ts'

/** The types published clients send; deletion has a path of its own and no short form. */
const types = ['identify', 'track', 'page', 'screen', 'group', 'alias'] as const

export type CallRoute = {
  readonly path: string
  /** What the path makes of its call; `null` for a batch, whose calls name their own. */
  readonly type: CallType | null
  /** Whether the write key may stand in the query: a beacon can send no header. */
  readonly takesQueryKey: boolean
}

const route = (path: string, type: CallType | null, takesQueryKey = false): CallRoute => ({
  path,
  type,
  takesQueryKey,
})

export const callRoutes: readonly CallRoute[] = [
  ...types.flatMap((type) => [route(`/v1/${type}`, type), route(`/v1/${type.charAt(0)}`, type)]),
  route('/v1/delete', 'delete'),
  route('/v1/batch', null),
  route('/v1/b', null),
  route('/v1/import', null),
  route('/beacon/v1/batch', null, true),
]

/** The last part is a type, whatever it says: a pixel is always answered with its image. */
export const pixelRoutes = ['/v1/pixel/:type', '/pixel/v1/:type'] as const

export const pixelType = (text: string): CallType | 'unknown' =>
  types.find((type) => type === text) ?? 'unknown'

export const clientMetricsRoute = '/v1/m'
export const settingsRoute = '/v1/projects/:writeKey/settings'
export const sourceConfigRoutes = ['/sourceConfig', '/v1/sourceConfig'] as const
export const healthRoutes = { live: '/health/live', ready: '/health/ready' } as const

const posted = [...callRoutes.map(({ path }) => path), clientMetricsRoute]
const gotten = [
  ...pixelRoutes,
  settingsRoute,
  ...sourceConfigRoutes,
  healthRoutes.live,
  healthRoutes.ready,
]

const matcher = (paths: readonly string[]) =>
  new RegExp(`^(?:${paths.map((path) => path.replaceAll(/:\w+/g, '[^/]+')).join('|')})/?$`)

const [isPosted, isGotten] = [matcher(posted), matcher(gotten)]

/** For `Allow`; `null` where nothing is. */
export const allowedAt = (path: string): string | null => {
  if (isPosted.test(path)) return 'POST, OPTIONS'
  return isGotten.test(path) ? 'GET, HEAD, OPTIONS' : null
}

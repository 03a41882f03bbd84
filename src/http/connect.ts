// Opens sockets for the outgoing port: vetted addresses only, its own time for connect and TLS, no self-signed peer.
import { X509Certificate } from 'node:crypto'
import type { LookupAddress, LookupOptions } from 'node:dns'
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { type SecureContext, connect as secure, type TLSSocket } from 'node:tls'
import type { IsAllowed } from './addresses.ts'
import { codedError } from './classify.ts'
import type { Resolve } from './lookup.ts'

export type Opening = {
  readonly timeoutMs: number
  readonly isAllowed: IsAllowed
  readonly resolve: Resolve
}

export type Peer = {
  /** An IPv6 address without its brackets. */
  readonly hostname: string
  readonly port: number
  /** `null`: no TLS. Throws when what the URL brings along cannot be used. */
  readonly context: (() => SecureContext) | null
}

/** How long each step took; `null` where there was none. */
export type OpeningPhases = {
  readonly dnsMs: number | null
  readonly connectMs: number
  readonly tlsMs: number | null
}

export type Opened = { readonly socket: Socket; readonly phases: OpeningPhases }

/** Resolves with a socket on which nothing but a verified handshake was written. */
export const openSocket = (opening: Opening, peer: Peer): Promise<Opened> =>
  new Promise((resolve, reject) => {
    const state: State = { socket: null, isResolving: false }
    const fail = (error: unknown) => {
      clearTimeout(timer)
      state.socket?.destroy()
      reject(error)
    }
    const timer = setTimeout(
      () =>
        fail(
          state.isResolving
            ? codedError('EDNS_TIMEOUT', 'no name server answered in time')
            : codedError('MILLRACE_CONNECT_TIMEOUT', 'no connection in time'),
        ),
      opening.timeoutMs,
    )
    const steps = { opening, peer, fail, resolve, state, started: performance.now() }
    try {
      connectStep({
        ...steps,
        resolve: (opened) => {
          clearTimeout(timer)
          resolve(opened)
        },
      })
    } catch (error) {
      fail(error)
    }
  })

/** What the clock finds when it runs out. */
type State = { socket: Socket | null; isResolving: boolean }

type Steps = {
  readonly opening: Opening
  readonly peer: Peer
  readonly state: State
  readonly started: number
  readonly fail: (error: unknown) => void
  readonly resolve: (opened: Opened) => void
}

const connectStep = (steps: Steps): void => {
  const { opening, peer, started, fail, state } = steps
  const { hostname, port } = peer
  if (isIP(hostname) !== 0 && !opening.isAllowed(hostname)) throw blocked(hostname)
  let dnsMs: number | null = null
  const socket = connectPlain({
    host: hostname,
    port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 60_000,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: 500,
    lookup: vettedLookup(opening, (isDone) => {
      state.isResolving = !isDone
      if (isDone) dnsMs = performance.now() - started
    }),
  })
  state.socket = socket
  socket.on('error', fail)
  socket.once('connect', () => {
    const connectMs = performance.now() - started - (dnsMs ?? 0)
    // What is connected is what was vetted, unless something between us and the system is not as we think.
    if (!opening.isAllowed(socket.remoteAddress ?? '')) return fail(blocked(hostname))
    if (!peer.context) return steps.resolve({ socket, phases: { dnsMs, connectMs, tlsMs: null } })
    return secureStep(steps, socket, (tlsMs) => ({ dnsMs, connectMs, tlsMs }))
  })
}

const secureStep = (
  { peer, state, fail, resolve }: Steps,
  plain: Socket,
  phasesOf: (tlsMs: number) => OpeningPhases,
): void => {
  const started = performance.now()
  let socket: TLSSocket
  try {
    socket = secure({
      socket: plain,
      host: peer.hostname,
      // An address has no place in the handshake; a name goes without its root dot.
      ...(isIP(peer.hostname) === 0 ? { servername: peer.hostname.replace(/\.$/, '') } : {}),
      ALPNProtocols: ['http/1.1'],
      // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot switch it off.
      rejectUnauthorized: true,
      ...(peer.context ? { secureContext: peer.context() } : {}),
    })
  } catch (error) {
    fail(codedError('MILLRACE_TLS_SETTINGS', 'the TLS settings cannot be used', error))
    return
  }
  state.socket = socket
  let shown: Buffer | undefined
  // Before it is judged: of one that is refused there is nothing left to look at. (Its bytes alone:
  // to ask for an X509Certificate here makes node find no names in it when it then judges.)
  socket.prependOnceListener('secure', () => {
    shown = socket.getPeerCertificate().raw
  })
  // Of all that may be wrong with a certificate this one is final.
  socket.on('error', (error) =>
    fail(shown && isSelfSigned(new X509Certificate(shown)) ? selfSigned() : error),
  )
  socket.once('secureConnect', () => {
    const certificate = socket.getPeerX509Certificate()
    if (!certificate || isSelfSigned(certificate)) return fail(selfSigned())
    shown = undefined
    return resolve({ socket, phases: phasesOf(performance.now() - started) })
  })
}

/** Also where the operator trusts that very certificate: the specification accepts none. */
const isSelfSigned = (certificate: X509Certificate): boolean =>
  certificate.checkIssued(certificate) && certificate.verify(certificate.publicKey)

const selfSigned = () => codedError('MILLRACE_SELF_SIGNED', 'the certificate is self-signed')

type LookupDone = (
  error: Error | null,
  addresses: string | LookupAddress[],
  family?: number,
) => void

/** Gives vetted addresses only, and the very ones that are then connected to: nothing resolves twice. */
const vettedLookup =
  ({ resolve, isAllowed }: Opening, resolving: (isDone: boolean) => void) =>
  (hostname: string, options: LookupOptions, done: LookupDone): void => {
    resolving(false)
    resolve(hostname).then(
      (all) => {
        resolving(true)
        const vetted = all.filter(({ address }) => isAllowed(address))
        const [first] = vetted
        if (!first) done(all.length > 0 ? blocked(hostname) : notFound(hostname), [])
        else if (options.all) done(null, [...vetted])
        else done(null, first.address, first.family)
      },
      (error) => done(error, []),
    )
  }

const blocked = (hostname: string) =>
  codedError('MILLRACE_ADDRESS_BLOCKED', `${hostname} is no address that may be reached`)

const notFound = (hostname: string) => codedError('ENOTFOUND', `${hostname} has no address`)

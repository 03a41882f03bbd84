// Opens sockets for the outgoing port: its own five seconds for connect and TLS, no self-signed peer.
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { buildConnector } from 'undici'

type Options = {
  readonly timeoutMs: number
  /** Trusted beside the system's authorities; tests give their own. */
  readonly ca?: string
}

export const connector = (options: Options): buildConnector.connector => {
  const connect = buildConnector({
    timeout: 0,
    allowH2: false,
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot switch it off.
    rejectUnauthorized: true,
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  })
  return (target, callback) => {
    const socket = connect(target, (...[error, connected]: buildConnector.CallbackArgs) => {
      clearTimeout(timer)
      if (error) return callback(error, null)
      if (connected instanceof TLSSocket && isSelfSigned(connected)) {
        connected.destroy()
        return callback(codedError('MILLRACE_SELF_SIGNED', 'the certificate is self-signed'), null)
      }
      return callback(null, connected)
    }) as unknown as Socket
    const timer = setTimeout(() => {
      socket.destroy(codedError('MILLRACE_CONNECT_TIMEOUT', 'no connection in time'))
    }, options.timeoutMs)
  }
}

/** Also where the operator trusts that very certificate: the specification accepts none. */
const isSelfSigned = (socket: TLSSocket): boolean => {
  const certificate = socket.getPeerX509Certificate()
  if (!certificate) return false
  return certificate.checkIssued(certificate) && certificate.verify(certificate.publicKey)
}

export const codedError = (code: string, message: string): Error =>
  Object.assign(new Error(message), { code })

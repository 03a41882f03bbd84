// The head of a request, written as one text: who is spoken to, the headers given, and how long the body is.
import manifest from '../../package.json' with { type: 'json' }
import type { PostRequest } from './post.ts'

export const userAgent = `Millrace/${manifest.version}`

const tail = `User-Agent: ${userAgent}\r\ncontent-length: `

/** The lines that are the same for every request to a URL. */
export const leadOf = ({ host, pathname, search }: URL): string =>
  `POST ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`

const token = /^[!#$%&'*+.^_`|~\dA-Za-z-]+$/
const unspeakable = /[^\t\x20-\x7e\x80-\xff]/
/** They say where a request ends, and whose connection it is. */
const framing =
  /^(host|content-length|transfer-encoding|connection|keep-alive|upgrade|expect|te|trailer)$/i

const namesMax = 1_000
const sound = new Set<string>()

const isSound = (name: string): boolean => {
  if (sound.has(name)) return true
  if (!token.test(name) || framing.test(name)) return false
  if (sound.size < namesMax) sound.add(name)
  return true
}

/** `null`: a name or a value is none that a header can have. */
export const headOf = (lead: string, { headers, body }: PostRequest): string | null => {
  const given = Array.isArray(headers) ? headers : Object.entries(headers).flat()
  let head = lead
  for (let at = 0; at < given.length; at += 2) {
    const [name, value] = [given[at] as string, given[at + 1] as string]
    if (!isSound(name) || unspeakable.test(value)) return null
    head += `${name}: ${value}\r\n`
  }
  return `${head}${tail}${body.length}\r\n\r\n`
}

/** Up to here head and body go out as one: copying costs less than a second write. */
const copiedMax = 65_536

type Writable = {
  write(bytes: Uint8Array): boolean
  cork(): void
  uncork(): void
}

export const writeRequest = (socket: Writable, head: string, body: Uint8Array): void => {
  if (body.length > copiedMax) {
    socket.cork()
    socket.write(Buffer.from(head, 'latin1'))
    socket.write(body)
    socket.uncork()
    return
  }
  const bytes = Buffer.allocUnsafe(head.length + body.length)
  bytes.write(head, 'latin1')
  bytes.set(body, head.length)
  socket.write(bytes)
}

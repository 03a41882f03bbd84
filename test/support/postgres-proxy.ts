// A TCP proxy in front of the test's Postgres that can be cut off, or made to lose the answer to a commit.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export type PostgresProxy = {
  /** Of the same database. */
  readonly url: string
  /** Called when a commit is sent: `true` lets it through, and loses its answer and the connection. */
  loseCommits(lose: () => boolean): void
  /** Postgres ends the next session, and says so in the very bytes that say it has begun. */
  endNext(): void
  /** Closes every connection and accepts none, until healed. */
  cut(): void
  heal(): void
  close(): Promise<void>
}

const commit = Buffer.from('commit\0')

/** ReadyForQuery, and the ErrorResponse of an administrator's command: PostgreSQL's protocol 3.0, message formats. */
const ready = Buffer.from('Z\0\0\0\x05I', 'latin1')
const fields = Buffer.from('SFATAL\0C57P01\0Mterminating connection\0\0', 'latin1')
const ended = Buffer.concat([Buffer.from([0x45, 0, 0, 0, 4 + fields.length]), fields])

/** `url` names the socket directory: `postgres://user@/database?host=…` */
export const openPostgresProxy = async (url: string): Promise<PostgresProxy> => {
  const { username, pathname, directory } = partsOf(url)
  const sockets = new Set<Socket>()
  let isCut = false
  let lose = () => false
  let isEndingNext = false
  const server = createServer((client) => {
    if (isCut) {
      client.destroy()
      return
    }
    const upstream = connect(`${directory}/.s.PGSQL.5432`)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    let isLosing = false
    const isEnding = isEndingNext
    isEndingNext = false
    client.on('data', (data: Buffer) => {
      isLosing ||= data.includes(commit) && lose()
      upstream.write(data)
    })
    upstream.on('data', (data: Buffer) => {
      if (isLosing) client.destroy()
      else if (isEnding && data.includes(ready)) client.end(Buffer.concat([data, ended]))
      else client.write(data)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const drop = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: `postgres://${username}@127.0.0.1:${port}${pathname}`,
    loseCommits: (next) => {
      lose = next
    },
    endNext: () => {
      isEndingNext = true
    },
    cut: () => {
      isCut = true
      drop()
    },
    heal: () => {
      isCut = false
    },
    close: async () => {
      drop()
      server.close()
      await once(server, 'close')
    },
  }
}

const partsOf = (url: string) => {
  const [, username = '', pathname = '', host = ''] =
    /^postgres:\/\/([^@]*)@(\/[^?]*)\?host=([^&]*)/.exec(url) ?? []
  return { username, pathname, directory: decodeURIComponent(host) }
}

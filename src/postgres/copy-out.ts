// COPY … TO STDOUT, gathered as it comes: each row in the bytes that Postgres sent.
import type pg from 'pg'

type Wire = { query(text: string): void }

/** The driver hands out what is gone with its next read: each message is copied once. */
export const copyOut = (client: pg.PoolClient, text: string): Promise<readonly Buffer[]> =>
  new Promise((resolve, reject) => {
    const messages: Buffer[] = []
    const submitted = {
      submit: (wire: Wire) => wire.query(text),
      handleCopyData: ({ chunk }: { readonly chunk: Buffer }) => {
        messages.push(Buffer.from(chunk))
      },
      handleCommandComplete: () => undefined,
      handleReadyForQuery: () => resolve(messages),
      handleError: reject,
    }
    client.query(submitted as unknown as pg.Submittable)
  })

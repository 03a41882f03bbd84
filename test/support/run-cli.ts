// Runs commands in this process, against an admin API and its database.
import { runCli } from '../../src/cli/cli.ts'

export type Ran = {
  readonly code: number
  readonly out: string
  /** Of `out`. */
  readonly lines: readonly string[]
  readonly err: string
}

type Against = { readonly databaseUrl: string; readonly url: string }

export const cliAgainst =
  ({ databaseUrl, url }: Against) =>
  async (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> => {
    const [out, err]: [string[], string[]] = [[], []]
    const code = await runCli({
      args,
      env: {
        MILLRACE_DATABASE_URL: databaseUrl,
        MILLRACE_ADMIN_PORT: new URL(url).port,
        MILLRACE_ADMIN_TOKEN: 'given-admin-token',
        ...env,
      },
      terminal: {
        out: (line) => void out.push(line),
        err: (line) => void err.push(line),
        isTTY: false,
      },
    })
    return { code, lines: out, out: out.join('\n'), err: err.join('\n') }
  }

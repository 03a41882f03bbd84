// `millrace migrate`: brings the database's tables up to date, for a deployment that does it ahead of the start.
import type { Command } from './command.ts'

export const command: Command = {
  name: 'migrate',
  summary: "bring the database's tables up to date (serve does it by itself)",
  usage: [''],
  run: async (call) => {
    // Opening it migrates it.
    const database = await call.database()
    const { rows } = await database.query<{ name: string }>(
      'select name from migration order by number desc limit 1',
    )
    call.terminal.out(`the database is at ${rows[0]?.name ?? 'no migration'}`)
    return 0
  },
}

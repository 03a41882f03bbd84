// Settings of a table of a day or an hour, which grows from nothing, is read by its keys and dropped whole.

/**
 * A statement of PL/pgSQL. What grows from nothing is analysed often, at the usual 100 for a third of a second each
 * time, and all that is appended and read waits for that on a small machine.
 */
export const withFewStatistics = (name: string): string => `execute (
        select 'alter table ${name} '
               || string_agg(format('alter column %I set statistics 10', attname), ', ')
          from pg_attribute
         where attrelid = '${name}'::regclass and attnum > 0 and not attisdropped);`

// The settings of the archive, and what they amount to.
import { type Static, Type } from 'typebox'
import { archivedTopics, compressions } from './archive/name.ts'
import { type Place, readPlace } from './archive/place.ts'
import type { Credentials } from './archive/s3.ts'
import { integer, number, orNull, setting } from './setting.ts'

export const archiveSettings = {
  archive: setting(orNull(Type.String({ minLength: 1 })), {
    variable: 'MILLRACE_ARCHIVE',
    reading: 'text',
    description: 'a folder, or s3://bucket/prefix?endpoint=URL&region=NAME',
  }),
  archiveAccessKeyId: setting(orNull(Type.String({ pattern: '^[\\x21-\\x7e]{1,256}$' })), {
    variable: 'MILLRACE_ARCHIVE_ACCESS_KEY_ID',
    reading: 'text',
    description: '1 to 256 printable characters without spaces',
    secret: 'whole',
  }),
  archiveSecretAccessKey: setting(orNull(Type.String({ pattern: '^[\\x21-\\x7e]{1,256}$' })), {
    variable: 'MILLRACE_ARCHIVE_SECRET_ACCESS_KEY',
    reading: 'text',
    description: '1 to 256 printable characters without spaces',
    secret: 'whole',
  }),
  archiveTopics: setting(
    Type.Array(Type.Enum([...archivedTopics]), {
      minItems: 1,
      uniqueItems: true,
      default: ['calls', 'calls.import'],
    }),
    {
      variable: 'MILLRACE_ARCHIVE_TOPICS',
      reading: 'list',
      description: `a list of distinct topics out of ${archivedTopics.join(', ')}, separated by commas`,
    },
  ),
  archiveCompression: setting(Type.Enum([...compressions], { default: compressions[0] }), {
    variable: 'MILLRACE_ARCHIVE_COMPRESSION',
    reading: 'text',
    description: compressions.join(' or '),
  }),
  archiveSegmentBytes: setting(
    integer(65_536, 67_108_864, 16_777_216),
    number('MILLRACE_ARCHIVE_SEGMENT_BYTES', 'a number of bytes, 65536 to 67108864'),
  ),
  archiveSegmentMinutes: setting(
    integer(1, 1_440, 60),
    number('MILLRACE_ARCHIVE_SEGMENT_MINUTES', 'a number of minutes, 1 to 1440'),
  ),
  archiveDays: setting(
    integer(0, 36_500, 0),
    number('MILLRACE_ARCHIVE_DAYS', 'a number of days, 1 to 36500, or 0: for ever'),
  ),
}

const schema = Type.Object(archiveSettings)

type Archiving = Readonly<Static<typeof schema>>

/** Beyond what a pattern can say; `named`: the roles were set, not left to their default. */
export const archiveProblems = (
  config: Archiving & { readonly roles: readonly string[] },
  named: boolean,
): readonly string[] => {
  const { archive, archiveAccessKeyId: id, archiveSecretAccessKey: secret } = config
  if (archive === null)
    return named && config.roles.includes('archive')
      ? ['MILLRACE_ROLES names archive: MILLRACE_ARCHIVE must say where it is']
      : []
  const read = readPlace(archive)
  if (!read.ok) return [`MILLRACE_ARCHIVE ${read.problem}`]
  return read.place.type === 's3' && (id === null || secret === null)
    ? [
        'MILLRACE_ARCHIVE names a bucket: MILLRACE_ARCHIVE_ACCESS_KEY_ID and MILLRACE_ARCHIVE_SECRET_ACCESS_KEY must be set',
      ]
    : []
}

/** `null` where there is no archive. */
export const placeOf = ({ archive }: Archiving): Place | null => {
  const read = archive === null ? null : readPlace(archive)
  return read?.ok === true ? read.place : null
}

export const credentialsOf = (config: Archiving): Credentials | null => {
  const { archiveAccessKeyId: accessKeyId, archiveSecretAccessKey: secretAccessKey } = config
  return accessKeyId === null || secretAccessKey === null ? null : { accessKeyId, secretAccessKey }
}

const dayMs = 86_400_000
const minuteMs = 60_000

export const archivingOf = (config: Archiving) => ({
  topics: config.archiveTopics,
  compression: config.archiveCompression,
  limits: {
    segmentBytesMax: config.archiveSegmentBytes,
    segmentMsMax: config.archiveSegmentMinutes * minuteMs,
    keepMs: config.archiveDays * dayMs,
  },
})

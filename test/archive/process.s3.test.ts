// A whole Millrace whose archive is a bucket of a real S3 server: written, erased from under kill -9, and checked.
import { inject, test } from 'vitest'
import type { Place } from '../../src/archive/place.ts'
import { openStore } from '../../src/archive/store.ts'
import { cloneDatabase } from '../support/database.ts'
import { s3Bucket, s3Credentials } from '../support/s3-gateway.ts'
import { seed } from '../support/seed.ts'
import { killWhileErasing } from './erasing-scene.ts'

test(`in a bucket, killed while it writes segments anew, it leaves nothing of who was deleted (SEED=${seed})`, async () => {
  const { pool, url: databaseUrl } = await cloneDatabase()
  const { endpoint } = inject('s3')
  const [prefix, region] = ['whole/', 'us-east-1']
  const place = { type: 's3', bucket: s3Bucket, prefix, endpoint, region }
  const store = openStore({ place: place as Place, credentials: s3Credentials })
  const env = {
    MILLRACE_ARCHIVE: `s3://${s3Bucket}/whole?endpoint=${endpoint}&region=${region}`,
    MILLRACE_ARCHIVE_ACCESS_KEY_ID: s3Credentials.accessKeyId,
    MILLRACE_ARCHIVE_SECRET_ACCESS_KEY: s3Credentials.secretAccessKey,
  }
  await killWhileErasing({ pool, databaseUrl, store, env, kills: 2, seed })
}, 600_000)

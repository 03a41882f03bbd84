// In every project: what folders a test file made are removed after it.
import { afterAll } from 'vitest'
import { removeFolders } from './folder.ts'

afterAll(removeFolders)

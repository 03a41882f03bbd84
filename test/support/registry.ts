// A real schema registry for tests: the one given, else Apicurio in a container, else a local one.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ownFolder } from './folder.ts'
import { apicurioFolder, dockerAnswers, findJava, freePort } from './kafka-cache.ts'
import { own } from './kafka-process.ts'
import { orStopped } from './stops.ts'

export type Registry = { readonly url: string; stop(): Promise<void> }

/** Throws when none can be had. */
export const startRegistry = async (): Promise<Registry> => {
  if (await dockerAnswers()) {
    try {
      return await startContainer()
    } catch (error) {
      console.warn(`No registry from Docker, trying Maven Central: ${String(error)}`)
    }
  }
  return await startLocal()
}

const path = '/apis/ccompat/v7'

const startLocal = async (): Promise<Registry> => {
  const [java, apicurio] = await Promise.all([findJava(21), apicurioFolder()])
  const folder = await ownFolder('registry')
  const port = await freePort()
  const settings = [
    '-Dquarkus.http.host=127.0.0.1',
    `-Dquarkus.http.port=${port}`,
    // Left to itself it takes port 9000 of every interface, which only one registry on a machine can have.
    '-Dquarkus.management.host=127.0.0.1',
    '-Dquarkus.management.port=0',
  ]
  const heap = ['-Xms128m', '-Xmx384m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1']
  const jar = ['-jar', join(apicurio, 'quarkus-run.jar')]
  const server = await own([java, ...heap, ...settings, ...jar], join(folder, 'registry.log'))
  const url = `http://127.0.0.1:${port}${path}`
  const stop = async () => {
    await server.end('SIGKILL')
    await rm(folder, { recursive: true, force: true })
  }
  await orStopped(stop, () =>
    ready(url, async () => {
      if (!server.running()) throw new Error(`the registry ended:\n${await server.output()}`)
    }),
  )
  return { url, stop }
}

const startContainer = async (): Promise<Registry> => {
  const { GenericContainer, Wait } = await import('testcontainers')
  const container = await new GenericContainer('apicurio/apicurio-registry:3.3.3')
    .withExposedPorts(8080)
    .withWaitStrategy(Wait.forListeningPorts())
    .start()
  const url = `http://${container.getHost()}:${container.getMappedPort(8080)}${path}`
  await ready(url, async () => {})
  return {
    url,
    stop: async () => {
      await container.stop()
    },
  }
}

const ready = async (url: string, alive: () => Promise<void>) => {
  const until = Date.now() + 180_000
  for (;;) {
    const answer = await fetch(`${url}/subjects`).catch(() => null)
    if (answer?.ok) return
    await alive()
    if (Date.now() > until) throw new Error(`no registry answers at ${url}`)
    await sleep(200)
  }
}

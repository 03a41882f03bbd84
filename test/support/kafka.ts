// A real Kafka broker for tests: the one given, else a container, else a local one from Maven Central.
import { execFile } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Kafka, logLevel } from 'kafkajs'
import { ownFolder } from './folder.ts'
import { dockerAnswers, findJava, freePort, kafkaClassPath } from './kafka-cache.ts'
import { type Owned, own } from './kafka-process.ts'
import { orStopped } from './stops.ts'

const run = promisify(execFile)

export type Broker = {
  readonly brokers: readonly string[]
  /** Stops it and removes its data. */
  stop(): Promise<void>
  /** In good order, to be started again. */
  halt(): Promise<void>
  /** As a power cut. */
  kill(): Promise<void>
  /** Starts it again on the same address and data. */
  restart(): Promise<void>
}

/** A broker of the caller's own, which it may kill. Throws when none can be had. */
export const startKafka = async (): Promise<Broker> => {
  if (await dockerAnswers()) {
    try {
      return await startContainer()
    } catch (error) {
      console.warn(`No broker from Docker, trying Maven Central: ${String(error)}`)
    }
  }
  return await startLocal()
}

const startLocal = async (): Promise<Broker> => {
  const [java, classPath] = await Promise.all([findJava(17), kafkaClassPath()])
  const folder = await ownFolder('kafka')
  const [port, controllerPort] = [await freePort(), await freePort()]
  const properties = join(folder, 'server.properties')
  await writeFile(properties, localSettings({ folder, port, controllerPort }))
  const quick = ['-Xmx128m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-cp', classPath]
  const storage = ['kafka.tools.StorageTool', 'format', '-t', clusterId, '-c', properties]
  const command = [java, '-Xms128m', '-Xmx512m', '-XX:+UseSerialGC', '-cp', classPath]
  const brokers = [`127.0.0.1:${port}`]
  let server: Owned | undefined
  const start = async () => {
    server = await own([...command, 'kafka.Kafka', properties], join(folder, 'broker.log'))
    await ready(brokers, async () => {
      if (!server?.running()) throw new Error(`the broker ended:\n${await server?.output()}`)
    })
  }
  const stop = async () => {
    // Its data goes with it: leaving in good order would only take time.
    await server?.end('SIGKILL')
    await rm(folder, { recursive: true, force: true })
  }
  await orStopped(stop, async () => {
    await run(java, [...quick, ...storage])
    await start()
  })
  return {
    brokers,
    stop,
    halt: async () => server?.end('SIGTERM', haltMs),
    kill: async () => server?.end('SIGKILL'),
    restart: start,
  }
}

/** A single node waits for a controller that is itself. */
const haltMs = 30_000

const clusterId = 'bWlsbHJhY2UtdGVzdHMtMQ'

type Local = { readonly folder: string; readonly port: number; readonly controllerPort: number }

const localSettings = ({ folder, port, controllerPort }: Local) => `
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${controllerPort}
listeners=PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}
advertised.listeners=PLAINTEXT://127.0.0.1:${port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=${join(folder, 'data')}
num.network.threads=2
num.io.threads=4
log.cleaner.dedupe.buffer.size=16777216
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
${Object.entries(sharedSettings)
  .map(([name, value]) => `${name}=${value}`)
  .join('\n')}
`

/** A single node, quick to form groups, and sessions short enough to watch one expire. */
const sharedSettings = {
  'default.replication.factor': '1',
  'offsets.topic.replication.factor': '1',
  'offsets.topic.num.partitions': '4',
  'transaction.state.log.replication.factor': '1',
  'transaction.state.log.min.isr': '1',
  'transaction.state.log.num.partitions': '4',
  'min.insync.replicas': '1',
  'auto.create.topics.enable': 'false',
  'group.initial.rebalance.delay.ms': '0',
  'group.min.session.timeout.ms': '1000',
  // A killed broker is let in again once its last session has ended.
  'broker.session.timeout.ms': '3000',
  'broker.heartbeat.interval.ms': '500',
}

const startContainer = async (): Promise<Broker> => {
  const { GenericContainer, Wait } = await import('testcontainers')
  const port = await freePort()
  const variable = ([name, value]: [string, string]) =>
    [`KAFKA_${name.toUpperCase().replaceAll('.', '_')}`, value] as const
  const container = await new GenericContainer('apache/kafka:4.3.1')
    .withExposedPorts({ container: 9092, host: port })
    .withEnvironment({
      KAFKA_NODE_ID: '1',
      KAFKA_PROCESS_ROLES: 'broker,controller',
      KAFKA_LISTENERS: 'PLAINTEXT://:9092,CONTROLLER://:9093',
      KAFKA_ADVERTISED_LISTENERS: `PLAINTEXT://127.0.0.1:${port}`,
      KAFKA_CONTROLLER_LISTENER_NAMES: 'CONTROLLER',
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: 'CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT',
      KAFKA_CONTROLLER_QUORUM_VOTERS: '1@localhost:9093',
      KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR: '1',
      KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR: '1',
      ...Object.fromEntries(Object.entries(sharedSettings).map(variable)),
    })
    .withWaitStrategy(Wait.forListeningPorts())
    .start()
  const brokers = [`127.0.0.1:${port}`]
  await ready(brokers, async () => {})
  return {
    brokers,
    stop: async () => {
      await container.stop()
    },
    halt: async () => {
      await run('docker', ['stop', container.getId()])
    },
    kill: async () => {
      await run('docker', ['kill', '--signal', 'KILL', container.getId()])
    },
    restart: async () => {
      await run('docker', ['start', container.getId()])
      await ready(brokers, async () => {})
    },
  }
}

/** An open port is not readiness: groups and producer ids work only once their coordinators loaded. */
const ready = async (brokers: readonly string[], alive: () => Promise<void>) => {
  const kafka = new Kafka({
    brokers: [...brokers],
    clientId: 'ready',
    logLevel: logLevel.NOTHING,
    retry: { retries: 0 },
  })
  const until = Date.now() + 120_000
  for (;;) {
    const admin = kafka.admin()
    try {
      await admin.connect()
      await admin.listTopics()
      await admin.fetchOffsets({ groupId: 'ready' })
      return
    } catch (error) {
      await alive()
      if (Date.now() > until) throw error
      await sleep(200)
    } finally {
      await admin.disconnect()
    }
  }
}

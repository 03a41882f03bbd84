// The chain of a key of the log by its hash, the first 64 bits of its SHA-1: as text in memory, as a signed number in Postgres.
import { hash } from 'node:crypto'

export const hashOfKey = (key: string): string => hash('sha1', key, 'hex').slice(0, 16)

export const chainOfKey = (key: string): bigint => hashToInt(hashOfKey(key))

export const hashToInt = (hash: string): bigint => BigInt.asIntN(64, BigInt(`0x${hash}`))

export const hashOf = (chain: bigint): string =>
  BigInt.asUintN(64, chain).toString(16).padStart(16, '0')

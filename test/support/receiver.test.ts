// The receiver of the tests itself: it must not let a body pass that some receivers could not verify.
import { expect, test } from 'vitest'
import { openReceiver } from './receiver.ts'

const post = async (body: string) => {
  const receiver = await openReceiver({ secret: null })
  await fetch(receiver.url, { method: 'POST', body }).catch(() => undefined)
  return receiver.close()
}

test.each([
  ['a space', '{"a": 1}'],
  ['a key twice', '{"a":1,"b":2,"a":3}'],
  ['integer keys after others', '{"a":3,"2":2}'],
  ['a number in another form', '{"a":1.0}'],
  ['an escape that is not needed', '{"a":"\\u00e9"}'],
  ['no JSON', '{"a":'],
])('a body with %s fails whoever closes the receiver', async (_, body) => {
  await expect(post(body)).rejects.toThrow('1 bodies are no fixed point')
})

test('a body that parsing and stringifying leaves as it is passes', async () => {
  await expect(post('{"2":2,"a":3,"b":"é\\ud800"}')).resolves.toBeUndefined()
})

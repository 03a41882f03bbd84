// The page: signs in, looks again and again while it is seen, shows each kind of long work, and steers it.
import { ask, Refused, token } from './api.js'
import { element, openCard } from './card.js'
import { isOpen } from './job.js'
import { kinds } from './jobs.js'

/** @typedef {import('./job.js').Job} Job */
/** @typedef {import('./job.js').Step} Step */
/** @typedef {import('./jobs.js').Names} Names */

const busyMs = 1_000
const idleMs = 5_000

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id))
const [notice, summary, entry, jobs, leave] = ['notice', 'summary', 'entry', 'jobs', 'leave'].map(
  byId,
)
const input = /** @type {HTMLInputElement} */ (byId('token'))
const sure = /** @type {HTMLDialogElement} */ (byId('sure'))

/** What a later look that succeeds takes back. */
const unseen = 'unseen'

/**
 * @param {string | null} text
 * @param {string} [code]
 */
const warn = (text, code = '') => {
  if (!notice) return
  notice.hidden = text === null
  notice.textContent = text ?? ''
  notice.dataset['code'] = code
}

/** @type {Names} */
let names = { sources: new Map(), destinations: new Map() }

const readNames = async () => {
  const [{ sources }, { destinations }] = await Promise.all([
    ask('GET', '/admin/v1/sources'),
    ask('GET', '/admin/v1/destinations'),
  ])
  /** @param {readonly { id: number, name: string }[]} of */
  const byNumber = (of) => new Map(of.map(({ id, name }) => [id, name]))
  names = { sources: byNumber(sources), destinations: byNumber(destinations) }
}

/** Asks before what cannot be taken back. @param {Step} step */
const isSure = (step) => {
  if (step.asks === null) return Promise.resolve(true)
  const [text, yes] = [sure.querySelector('p'), sure.querySelector('button[value=yes]')]
  if (text) text.textContent = step.asks
  if (yes) yes.textContent = step.label
  sure.returnValue = 'no'
  sure.showModal()
  return new Promise((resolve) => {
    sure.addEventListener('close', () => resolve(sure.returnValue === 'yes'), { once: true })
  })
}

/** @param {Step} step */
const take = async (step) => {
  if (!(await isSure(step))) return
  try {
    await ask('POST', step.path)
    warn(null)
  } catch (error) {
    warn(error instanceof Refused ? error.message : String(error))
  }
  await look()
}

/** @type {Map<string, ReturnType<typeof openCard>>} */
const cards = new Map()

const sections = new Map(
  kinds.map((kind) => {
    const node = element('section')
    const title = element('h2')
    const none = element('p', 'none')
    const list = element('div', 'list')
    title.textContent = kind.title
    none.textContent = kind.none
    node.append(title, none, list)
    node.id = kind.name
    return [kind.name, { node, none, list }]
  }),
)
jobs?.append(...[...sections.values()].map(({ node }) => node))

/** @param {readonly { name: string, jobs: readonly Job[] }[]} found */
const show = (found) => {
  const keys = new Set()
  for (const { name, jobs } of found) {
    const section = sections.get(name)
    if (!section) continue
    section.none.hidden = jobs.length > 0
    const nodes = jobs.map((job) => {
      keys.add(job.key)
      const card = cards.get(job.key)
      if (card) card.tell(job)
      const shown = card ?? openCard(job, (step) => void take(step))
      cards.set(job.key, shown)
      return shown.node
    })
    if (
      nodes.some((node, at) => section.list.children[at] !== node) ||
      nodes.length !== section.list.children.length
    )
      section.list.replaceChildren(...nodes)
  }
  for (const key of cards.keys()) if (!keys.has(key)) cards.delete(key)
}

/** Open ones first; the newest first among each. @param {readonly Job[]} jobs */
const sorted = (jobs) => [...jobs.filter(isOpen), ...jobs.filter((job) => !isOpen(job))]

const readAll = async () => {
  const answers = await Promise.all(
    kinds.map(({ name, query }) => ask('GET', `/admin/v1/${name}${query}`)),
  )
  return kinds.map(({ name, jobOf }, at) => ({
    name,
    jobs: sorted(answers[at][name].map((/** @type {unknown} */ view) => jobOf(view, names))),
  }))
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let next
let isLooking = false

/** One look at a time; the next one sooner while something goes on. @returns {Promise<void>} */
const look = async () => {
  clearTimeout(next)
  const mine = token.read()
  if (isLooking || mine === null) return
  isLooking = true
  /** Who signed out meanwhile sees no more of it. */
  const isMine = () => token.read() === mine
  let open = 0
  try {
    await readNames()
    const found = await readAll()
    open = found.flatMap(({ jobs }) => jobs).filter(isOpen).length
    if (isMine()) showAll(found, open)
  } catch (error) {
    if (isMine()) tellTrouble(error)
  }
  isLooking = false
  if (!isMine()) return look()
  if (document.visibilityState === 'visible') next = setTimeout(look, open > 0 ? busyMs : idleMs)
}

/**
 * @param {Parameters<typeof show>[0]} found
 * @param {number} open
 */
const showAll = (found, open) => {
  show(found)
  if (summary) summary.textContent = open === 0 ? 'Nothing is going on' : `${open} going on`
  if (notice?.dataset['code'] === unseen) warn(null)
  enter()
}

/** @param {unknown} error */
const tellTrouble = (error) => {
  if (error instanceof Refused && error.code === 'unauthorized')
    quit('This token is not known: sign in with another one.')
  else warn(error instanceof Refused ? error.message : String(error), unseen)
}

const enter = () => {
  if (entry) entry.hidden = true
  if (jobs) jobs.hidden = false
  if (leave) leave.hidden = false
}

/** @param {string | null} why */
const quit = (why) => {
  clearTimeout(next)
  token.forget()
  warn(why)
  if (entry) entry.hidden = false
  if (jobs) jobs.hidden = true
  if (leave) leave.hidden = true
  if (summary) summary.textContent = ''
  for (const { list } of sections.values()) list.replaceChildren()
  cards.clear()
  input.focus()
}

entry?.addEventListener('submit', (event) => {
  event.preventDefault()
  token.keep(input.value.trim())
  input.value = ''
  warn(null)
  void look()
})
leave?.addEventListener('click', () => quit(null))
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') void look()
})

if (token.read() === null) quit(null)
else void look()

// One job on the page: made once, told again at every look, so that a button keeps its focus.
import { durationOf } from './job.js'

/** @typedef {import('./job.js').Job} Job */
/** @typedef {import('./job.js').Step} Step */

/**
 * @param {string} tag
 * @param {string} [className]
 */
export const element = (tag, className) => {
  const made = document.createElement(tag)
  if (className !== undefined) made.className = className
  return made
}

/**
 * @param {HTMLElement} node
 * @param {string} text
 */
const say = (node, text) => {
  if (node.textContent !== text) node.textContent = text
}

/**
 * @param {Job} first
 * @param {(step: Step) => void} take
 */
export const openCard = (first, take) => {
  const node = element('article')
  const title = element('h3')
  const state = element('span')
  const bar = /** @type {HTMLProgressElement} */ (element('progress'))
  const said = element('p', 'said')
  const trouble = element('p', 'trouble')
  const facts = element('dl')
  const steps = element('menu')
  const head = element('div', 'head')
  head.append(title, state, steps)
  node.append(head, bar, said, trouble, facts)
  node.dataset['key'] = first.key

  /** @param {Job} job */
  const tell = (job) => {
    say(title, job.title)
    say(state, job.state)
    state.className = `state ${job.tone}`
    node.className = job.tone
    bar.hidden = job.share === null || job.tone === 'over'
    bar.value = job.share ?? 0
    bar.setAttribute('aria-label', `${job.title}: progress`)
    say(said, lineOf(job))
    trouble.hidden = job.trouble === null
    say(trouble, job.trouble ?? '')
    tellFacts(facts, job.facts)
    tellSteps(steps, job.steps, take)
  }
  tell(first)
  return { node, tell }
}

/** @param {Job} job */
const lineOf = ({ share, secondsLeft, by, createdAt, tone }) =>
  [
    ...(share === null || tone === 'over' ? [] : [`${Math.floor(share * 100)} %`]),
    ...(secondsLeft === null ? [] : [`${durationOf(secondsLeft)} left`]),
    `asked for by ${by}`,
    new Date(createdAt).toLocaleString(),
  ].join(' · ')

/**
 * @param {HTMLElement} list
 * @param {Job['facts']} facts
 */
const tellFacts = (list, facts) => {
  const labels = facts.map(([label]) => label).join('|')
  if (list.dataset['labels'] !== labels) {
    list.replaceChildren(
      ...facts.map(([label]) => {
        const pair = element('div')
        const term = element('dt')
        term.textContent = label
        pair.append(term, element('dd'))
        return pair
      }),
    )
    list.dataset['labels'] = labels
  }
  const values = list.querySelectorAll('dd')
  for (const [at, [, value]] of facts.entries()) {
    const shown = values[at]
    if (shown) say(shown, value)
  }
}

/**
 * @param {HTMLElement} menu
 * @param {readonly Step[]} steps
 * @param {(step: Step) => void} take
 */
const tellSteps = (menu, steps, take) => {
  const paths = steps.map(({ path }) => path).join('|')
  if (menu.dataset['paths'] === paths) return
  menu.replaceChildren(
    ...steps.map((step) => {
      const button = /** @type {HTMLButtonElement} */ (element('button', step.asks ? 'grave' : ''))
      button.type = 'button'
      button.textContent = step.label
      button.addEventListener('click', () => take(step))
      return button
    }),
  )
  menu.dataset['paths'] = paths
}

// What a card shows of a job, and the words and figures that all kinds of jobs are told in.

/**
 * @typedef {object} Step
 * @property {string} label
 * @property {string} path Of the admin API, posted to.
 * @property {string | null} asks What cannot be taken back is asked first.
 */

/**
 * @typedef {object} Job
 * @property {string} key Unique among all kinds.
 * @property {string} title
 * @property {string} by
 * @property {string} state
 * @property {'going' | 'waiting' | 'done' | 'wrong' | 'over'} tone
 * @property {number | null} share Done so far, 0 to 1; `null` where nobody knows.
 * @property {number | null} secondsLeft
 * @property {readonly (readonly [string, string])[]} facts
 * @property {string | null} trouble
 * @property {readonly Step[]} steps
 * @property {string} createdAt RFC 3339.
 */

/** @param {number} amount */
const whole = (amount) => Math.round(amount).toLocaleString('en-US')

/** @param {number} perSecond */
export const rateOf = (perSecond) =>
  `${perSecond.toLocaleString('en-US', { maximumFractionDigits: 2 })} a second`

/** @param {number} seconds */
export const durationOf = (seconds) => {
  const left = Math.max(0, Math.ceil(seconds))
  if (left < 60) return `${left} s`
  if (left < 3_600) return `${Math.floor(left / 60)} min ${left % 60} s`
  return `${Math.floor(left / 3_600)} h ${Math.floor((left % 3_600) / 60)} min`
}

/** @param {number} bytes */
export const megabytes = (bytes) =>
  `${(bytes / 1e6).toLocaleString('en-US', { maximumFractionDigits: 1 })} MB`

/**
 * @param {number} done
 * @param {number | null} all
 */
export const shareOf = (done, all) =>
  all === null ? null : all === 0 ? 1 : Math.min(1, done / all)

/**
 * Amounts that are nothing are left out, but for the first `kept`.
 * @param {number} kept
 * @param {readonly (readonly [string, number])[]} amounts
 */
export const amounts = (kept, amounts) =>
  amounts
    .filter(([, amount], at) => at < kept || amount > 0)
    .map(([label, amount]) => /** @type {const} */ ([label, whole(amount)]))

/** @type {Readonly<Record<string, Job['tone']>>} */
const tones = {
  running: 'going',
  requested: 'going',
  received: 'going',
  folding: 'going',
  comparing: 'going',
  swapping: 'going',
  draining: 'going',
  paused: 'waiting',
  differs: 'wrong',
  failed: 'wrong',
  finished: 'done',
  swapped: 'done',
  verified: 'done',
  cancelled: 'over',
}

/** @param {string} state */
export const toneOf = (state) => tones[state] ?? 'over'

/** @param {Job} job */
export const isOpen = ({ tone, state }) => tone !== 'done' && tone !== 'over' && state !== 'failed'

/**
 * @param {string} path
 * @param {string} state
 * @param {string} loss What cancelling means.
 * @returns {readonly Step[]}
 */
export const steerings = (path, state, loss) => {
  const cancel = { label: 'Cancel', path: `${path}/cancel`, asks: loss }
  if (state === 'running') return [{ label: 'Pause', path: `${path}/pause`, asks: null }, cancel]
  if (state === 'paused') return [{ label: 'Resume', path: `${path}/resume`, asks: null }, cancel]
  return state === 'draining' ? [cancel] : []
}

/**
 * @param {string} from
 * @param {string} until
 */
export const spanOf = (from, until) =>
  `${from.slice(0, 16).replace('T', ' ')} – ${until.slice(0, 16).replace('T', ' ')}`

// Each kind of long work as a job: what the admin API says of it, as a card shows it.
import { amounts, megabytes, rateOf, shareOf, spanOf, steerings, toneOf } from './job.js'

/** @typedef {import('./job.js').Job} Job */
/** @typedef {{ readonly sources: ReadonlyMap<number, string>, readonly destinations: ReadonlyMap<number, string> }} Names */

/**
 * @typedef {object} Kind
 * @property {string} name The field of the answer, and the path's last part.
 * @property {string} title
 * @property {string} query Of the list, where the API's own limit is another.
 * @property {string} none What is said where there are none.
 * @property {(view: any, names: Names) => Job} jobOf
 */

/** @type {Kind['jobOf']} */
const replayOf = (view, { destinations }) => ({
  key: `replays/${view.id}`,
  title: `Replay ${view.id} to ${destinations.get(view.destinationId) ?? `destination ${view.destinationId}`}`,
  by: view.actor,
  state: view.state,
  tone: toneOf(view.state),
  share: shareOf(view.read, view.total),
  secondsLeft: view.state === 'running' ? view.etaSeconds : null,
  facts: [
    ['Span in UTC', spanOf(view.since, view.until)],
    ['At most', rateOf(view.ratePerSecond)],
    ...(view.reasons === null ? [] : [/** @type {const} */ (['Dead by', view.reasons.join(', ')])]),
    ...amounts(3, [
      ['Read', view.read],
      ['Sent', view.sent],
      ['Delivered', view.delivered],
      ['Waiting', view.waiting + view.parked],
      ['Given up', view.givenUp],
      ['Withheld', view.historical + view.filtered + view.unsendable],
      ['Suppressed', view.suppressed],
      ['Repeats', view.duplicate],
    ]),
  ],
  trouble: view.trouble,
  steps: steerings(
    `/admin/v1/replays/${view.id}`,
    view.state,
    'What of this replay was not delivered yet is given up. A cancelled replay cannot go on.',
  ),
  createdAt: view.createdAt,
})

/** @type {Kind['jobOf']} */
const importOf = (view, { sources }) => ({
  key: `imports/${view.id}`,
  title: `${view.dryRun ? 'Dry run' : 'Import'} ${view.id} of ${view.name}`,
  by: view.actor,
  state: view.state,
  tone: toneOf(view.state),
  share: view.state === 'finished' ? 1 : shareOf(view.place, view.bytes),
  secondsLeft: null,
  facts: [
    ['Source', sources.get(view.sourceId) ?? `${view.sourceId}`],
    [
      'Read',
      view.bytes === null
        ? megabytes(view.place)
        : `${megabytes(view.place)} of ${megabytes(view.bytes)}`,
    ],
    ...amounts(2, [
      ['Accepted', view.accepted],
      ['Rejected', view.rejected],
      ['Filtered', view.filtered],
      ['Suppressed', view.suppressed],
      ['Without a time', view.untimed],
    ]),
  ],
  trouble: null,
  steps:
    view.state === 'running'
      ? [
          {
            label: 'Cancel',
            path: `/admin/v1/imports/${view.id}/cancel`,
            asks: 'What was imported so far stays. A cancelled import cannot go on.',
          },
        ]
      : [],
  createdAt: view.createdAt,
})

/** @type {Kind['jobOf']} */
const recoveryOf = (view, { destinations }) => ({
  key: `recoveries/${view.id}`,
  title: `Recovery ${view.id} of ${destinations.get(view.destinationId) ?? `destination ${view.destinationId}`}`,
  by: view.origin === 'heal' ? 'a healed certificate' : view.actor,
  state: view.state,
  tone: toneOf(view.state),
  share: shareOf(view.recovered, view.matched),
  secondsLeft:
    view.state === 'running' ? (view.matched - view.recovered) / view.ratePerSecond : null,
  facts: [
    ['At most', rateOf(view.ratePerSecond)],
    ...(view.reason === null ? [] : [/** @type {const} */ (['Dead by', view.reason])]),
    ...amounts(3, [
      ['Matched', view.matched],
      ['Sent again', view.recovered],
      ['Delivered', view.delivered],
      ['Waiting', view.waiting],
      ['Dead again', view.diedAgain],
    ]),
  ],
  trouble: null,
  steps: steerings(
    `/admin/v1/recoveries/${view.id}`,
    view.state,
    'What of it waits for a try is dead again. A cancelled recovery cannot go on.',
  ),
  createdAt: view.createdAt,
})

/** @type {Kind['jobOf']} */
const rebuildOf = (view) => {
  const path = `/admin/v1/rebuilds/${view.id}`
  const isOver = view.endedAt !== null
  return {
    key: `rebuilds/${view.id}`,
    title: `Rebuild ${view.id}${view.verifyOnly ? ', to compare only' : ''}`,
    by: view.actor,
    state: view.state,
    tone: toneOf(view.state),
    share: view.progress ? shareOf(view.progress.folded, view.progress.live) : isOver ? null : 0,
    secondsLeft: null,
    facts: amounts(0, [
      ['Folded', view.progress?.folded ?? 0],
      ['Live', view.progress?.live ?? 0],
      ['Users compared', view.users ?? 0],
      ['Differing', view.differing ?? 0],
    ]),
    trouble: view.reason,
    steps: [
      ...(view.state === 'differs'
        ? [
            {
              label: 'Swap in',
              path: `${path}/accept`,
              asks: 'The rebuilt state takes the place of the live one, whatever differs.',
            },
          ]
        : []),
      ...(isOver
        ? []
        : [{ label: 'Cancel', path: `${path}/cancel`, asks: 'What was folded is thrown away.' }]),
    ],
    createdAt: view.createdAt,
  }
}

/** @type {Readonly<Record<string, string>>} */
const deletionTitles = {
  suppress_only: 'Suppression',
  unsuppress: 'End of suppression',
  delete_only: 'Deletion',
  suppress_with_delete: 'Deletion and suppression',
}

/** Who asked to be forgotten is not named on a screen. @type {Kind['jobOf']} */
const deletionOf = (view, { destinations }) => {
  const stores = /** @type {{ state: string }[]} */ (Object.values(view.stores)).filter(
    ({ state }) => state !== 'not_needed',
  )
  const erased = stores.filter(({ state }) => state === 'erased').length
  const told = /** @type {{ destinationId: number, state: string }[]} */ (view.destinations)
  return {
    key: `deletions/${view.id}`,
    title: `${deletionTitles[view.kind] ?? view.kind} ${view.id}`,
    by: view.origin === 'call' ? 'a call with a secret key' : 'the admin API',
    state: view.state,
    tone: toneOf(view.state),
    share: view.state === 'finished' ? 1 : shareOf(erased, stores.length),
    secondsLeft: null,
    facts: [
      ...amounts(1, [
        ['Ids', view.ids],
        ['Other ids found', view.idsFound],
      ]),
      ...(stores.length === 0
        ? []
        : [/** @type {const} */ (['Stores erased', `${erased} of ${stores.length}`])]),
      ...(told.length === 0
        ? []
        : [
            /** @type {const} */ ([
              'Told',
              [
                ...new Set(
                  told
                    .filter(({ state }) => state === 'sent')
                    .map(({ destinationId }) => destinationId),
                ),
              ]
                .map((id) => destinations.get(id) ?? `destination ${id}`)
                .join(', ') || 'nobody yet',
            ]),
          ]),
    ],
    trouble: view.reason,
    steps: [],
    createdAt: view.createdAt,
  }
}

/** @type {readonly Kind[]} */
export const kinds = [
  {
    name: 'replays',
    query: '',
    title: 'Replays',
    none: 'None yet. “millrace replay” sends a past span of the log to one destination again.',
    jobOf: replayOf,
  },
  {
    name: 'imports',
    query: '',
    title: 'Imports',
    none: 'None yet. “millrace import” takes past calls from files.',
    jobOf: importOf,
  },
  {
    name: 'recoveries',
    query: '',
    title: 'Recoveries',
    none: 'None yet. “millrace dead recover” sends dead messages again.',
    jobOf: recoveryOf,
  },
  {
    name: 'rebuilds',
    query: '',
    title: 'Rebuilds',
    none: 'None yet. “millrace rebuild” folds the state of all users anew and proves it equal.',
    jobOf: rebuildOf,
  },
  {
    name: 'deletions',
    query: '?limit=20',
    title: 'Deletion requests',
    none: 'None yet. “millrace delete-user” forgets a user.',
    jobOf: deletionOf,
  },
]

/** Works out only once what each constant comes to: conditions ask for the same few over and over. */
export const once = <From, To>(work: (from: From) => To) => {
  const known = new Map<From, To>()
  return (from: From): To => {
    const found = known.get(from)
    if (found !== undefined) return found
    if (known.size >= 100_000) known.clear()
    const made = work(from)
    known.set(from, made)
    return made
  }
}

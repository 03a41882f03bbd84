// The property an audience or trait is sent as: snake_case of its name, fixed when it is created.

/** `null` when nothing of the name is left, which the caller refuses. */
export const propertyKey = (name: string): string | null => {
  const words = name
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2')
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
  return words.length === 0 ? null : words.join('_')
}

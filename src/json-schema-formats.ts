// The formats that JSON Schemas may name: few, each checked in linear time; any other is ignored.

type Format = (text: string) => boolean

const day = /^(\d{4})-(\d{2})-(\d{2})$/
const instant =
  /^(\d{4}-\d{2}-\d{2})[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/
const mailbox = /^[^\s@]+@[^\s@]+$/
const mailboxLengthMax = 320
const scheme = /^[a-zA-Z][a-zA-Z0-9+.-]*:\S*$/
const uuid = /^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/

const isDate: Format = (text) => {
  const [, year, month, date] = day.exec(text) ?? []
  if (date === undefined) return false
  const time = new Date(0)
  time.setUTCFullYear(Number(year), Number(month) - 1, Number(date))
  return time.getUTCMonth() === Number(month) - 1 && time.getUTCDate() === Number(date)
}

const isInstant: Format = (text) => {
  const [, date] = instant.exec(text) ?? []
  return date !== undefined && isDate(date)
}

export const schemaFormats: Readonly<Record<string, Format>> = {
  date: isDate,
  'date-time': isInstant,
  email: (text) => text.length <= mailboxLengthMax && mailbox.test(text),
  uri: (text) => scheme.test(text) && URL.canParse(text),
  uuid: (text) => uuid.test(text),
}

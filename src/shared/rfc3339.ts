const PATTERN = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/** The moment that an RFC 3339 text names, to the millisecond; null when it is none. Leap seconds are none. */
export function parseRfc3339(text: string): Date | null {
  const match = PATTERN.exec(text);
  if (match === null) return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number);
  const milliseconds = Number((match[7] ?? '').slice(0, 3).padEnd(3, '0'));
  const offsetHour = Number(match[9] ?? 0);
  const offsetMinute = Number(match[10] ?? 0);
  if (hour > 23 || minute > 59 || second > 59 || offsetHour > 23 || offsetMinute > 59) return null;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  // A day or a month that does not exist has become another one.
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return null;
  const offset = (match[8] === '-' ? -1 : 1) * (offsetHour * 60 + offsetMinute);
  date.setUTCHours(hour, minute - offset, second, milliseconds);
  // RFC 3339 has four digits for a year, in UTC too.
  return date.getUTCFullYear() >= 0 && date.getUTCFullYear() <= 9999 ? date : null;
}

/** Answers are for one caller and one moment; a route that may be cached says so itself. */
export function headersOfEveryAnswer(requestId: string): Record<string, string> {
  return { 'X-Request-Id': requestId, 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-store' };
}

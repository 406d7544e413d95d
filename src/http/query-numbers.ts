/**
 * Turns the digits of query parameters whose schema says `integer` into numbers, before the schema is applied.
 * A query is all text, and the validator coerces nothing, since in a body "30" is not 30.
 */
export function readQueryNumbers(query: unknown, schema: unknown): void {
  const { properties = {} } = (schema ?? {}) as { properties?: Record<string, { type?: string }> };
  const values = query as Record<string, unknown>;
  for (const [name, { type }] of Object.entries(properties)) {
    const value = values[name];
    if (type === 'integer' && typeof value === 'string' && /^-?\d{1,15}$/.test(value)) {
      values[name] = Number(value);
    }
  }
}

/** Which methods each path has, to tell 405 from 404: Fastify's router looks for method and path together. */
export class RouteTable {
  readonly #routes: { segments: string[]; methods: Set<string> }[] = [];

  /** @param pattern Path with `:name` for a segment that varies. */
  add(pattern: string, methods: string | string[]): void {
    const segments = pattern.split('/');
    let route = this.#routes.find((known) => known.segments.join('/') === pattern);
    if (route === undefined) {
      route = { segments, methods: new Set() };
      this.#routes.push(route);
    }
    for (const method of [methods].flat()) route.methods.add(method);
  }

  /** The methods of a request's path, sorted; empty when there is nothing at that path. */
  methodsAt(url: string): string[] {
    const segments = decodedPath(url).split('/');
    const methods = new Set<string>();
    for (const route of this.#routes) {
      if (matches(route.segments, segments)) for (const method of route.methods) methods.add(method);
    }
    return [...methods].sort();
  }
}

function matches(pattern: string[], segments: string[]): boolean {
  return (
    pattern.length === segments.length &&
    pattern.every((expected, index) =>
      expected.startsWith(':') ? segments[index] !== '' : expected === segments[index],
    )
  );
}

/** The path of a request target, without scheme and host where a proxy sent those, and without the query. */
function decodedPath(url: string): string {
  const path = url.replace(/^https?:\/\/[^/?]*/i, '').replace(/[?#].*$/s, '');
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

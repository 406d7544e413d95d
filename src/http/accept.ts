/**
 * The media type that a caller wants most of those that are `offered`, by the Accept header (RFC 9110, 12.5.1). Of
 * types wanted alike the first is taken; so it is when none is wanted, since an answer is better than none.
 */
export function preferredType<Offered extends string>(
  accept: string | undefined,
  offered: readonly [Offered, ...Offered[]],
): Offered {
  let [best] = offered;
  let bestQuality = 0;
  for (const type of offered) {
    const quality = qualityOf(type, accept ?? '*/*');
    if (quality > bestQuality) {
      best = type;
      bestQuality = quality;
    }
  }
  return best;
}

/** How much a type is wanted, 0 to 1: what the most specific range that it falls into says. */
function qualityOf(type: string, accept: string): number {
  const ranges = accept.split(',').map((text) => {
    const [range = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
    return { range, quality: /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(weight) ? Number(weight) : 0 };
  });
  for (const wanted of [type, `${type.split('/')[0]}/*`, '*/*']) {
    const found = ranges.find(({ range }) => range === wanted);
    if (found !== undefined) return found.quality;
  }
  return 0;
}

// What stands in a row or column of a view: a token or a whole word, and how weights of tokens become weights of words.

/** @typedef {{text: string, places: number[], special: boolean, sink: boolean, join: boolean, sentence: number | null}} Unit */

/** The units of one side: its tokens, or its words. @param {object} side @param {boolean} words @returns {Unit[]} */
export function unitsOf(side, words) {
  const [special, joins, sinks] = [new Set(side.special), new Set(side.joins), new Set(side.sinks)];
  const unit = (text, places) => ({
    text,
    places,
    special: special.has(places[0]),
    sink: places.some((place) => sinks.has(place)),
    join: !words && joins.has(places[0]),
    sentence: side.sentences ? side.sentences[places[0]] : null,
  });
  return words ? side.words.map((word) => unit(word.text, word.places)) : side.texts.map((text, place) => unit(text, [place]));
}

/** Whether a side has words of several tokens, so that there is something to choose. @param {object} side */
export const hasPieces = (side) => side.words.some(({ places }) => places.length > 1);

/** The weights of one head between units: a word gets the sum of its pieces' and gives their mean.
 * @param {Float32Array} values `[head, query, key]` of tokens @param {number} head @param {[number, number, number]} shape
 * @param {Unit[]} queries @param {Unit[]} keys @param {Set<number>} masked queries that attend to nothing
 * @returns {Float32Array} `[query unit, key unit]` */
export function unitGrid(values, head, [, tokens, width], queries, keys, masked) {
  const start = head * tokens * width;
  if (queries.length === tokens && keys.length === width) return values.subarray(start, start + tokens * width);
  const grid = new Float32Array(queries.length * keys.length);
  queries.forEach(({ places }, query) => {
    const asked = places.filter((place) => !masked.has(place));
    for (const place of asked) {
      const row = start + place * width;
      keys.forEach((key, column) => {
        for (const from of key.places) grid[query * keys.length + column] += values[row + from] / asked.length;
      });
    }
  });
  return grid;
}

/** What is beyond the keys that travel, for each query unit. @param {Float32Array | null} rest `[head, query]` of tokens */
export function unitRest(rest, head, tokens, queries, masked) {
  if (!rest) return null;
  return Float32Array.from(queries, ({ places }) => {
    const asked = places.filter((place) => !masked.has(place));
    return asked.reduce((sum, place) => sum + rest[head * tokens + place], 0) / Math.max(asked.length, 1);
  });
}

// Places on a map of layers and heads: the one under the pointer, and the one that a key leads to.

const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -Infinity], End: [0, Infinity] };

/** A place that is on the map. @param {number} place @param {number} count */
const within = (place, count) => Math.min(Math.max(place, 0), count - 1);

/** The row and the column under the pointer. @param {PointerEvent} event on the map @param {{width: number, height: number}} cell
 * @param {[number, number]} counts of rows and columns @returns {[number, number]} */
export function pointedPlace({ offsetX, offsetY }, { width, height }, [rows, columns]) {
  return [within(Math.floor(offsetY / height), rows), within(Math.floor(offsetX / width), columns)];
}

/** Where a key leads from a place, or null for a key that does not move: arrows to the neighbours, Home and End along the row.
 * @param {KeyboardEvent} event @param {[number, number]} from row and column @param {[number, number]} counts of them
 * @returns {[number, number] | null} */
export function movedPlace({ key, ctrlKey, metaKey, altKey }, from, counts) {
  if (!(key in MOVES) || ctrlKey || metaKey || altKey) return null;
  const [row, column] = from.map((place, axis) => within(place + MOVES[key][axis], counts[axis]));
  return [row, column];
}

// Attention weights out of their bytes: one layer at a time, when it is first looked at.

/** The weights of a layer, row after row: of all keys, or of those at `places`, as many in every row. `at` is one weight, 0 where it did not travel.
 * @typedef {{values: Float32Array, places: Uint16Array | null, rest: Float32Array | null, at: (head: number, query: number, key: number) => number, error: (head: number, query: number, value: number) => number}} Layer */

const LAYERS_HELD = 4;
let halves = null;

/** Every 16-bit float as a 32-bit one. */
function halfFloats() {
  if (halves) return halves;
  halves = new Float32Array(65536);
  for (let exponent = 0; exponent < 32; exponent++) {
    const step = 2 ** (Math.max(exponent, 1) - 25);
    const whole = exponent ? 1024 : 0;
    for (let fraction = 0; fraction < 1024; fraction++) {
      const size = exponent === 31 ? (fraction ? NaN : Infinity) : step * (whole + fraction);
      halves[(exponent << 10) | fraction] = size;
      halves[32768 | (exponent << 10) | fraction] = -size;
    }
  }
  return halves;
}

/** 16-bit floats as 32-bit ones. @param {Uint16Array} codes @returns {Float32Array} */
export function fromHalves(codes) {
  const table = halfFloats();
  return Float32Array.from(codes, (bits) => table[bits]);
}

/** The bytes of a blob, inflated. @param {{get: (name: string) => any}} model @param {string} name @returns {Promise<ArrayBuffer>} */
export async function blob(model, name) {
  const given = await model.get("blobs")[name];
  const bytes = given instanceof ArrayBuffer ? new Uint8Array(given) : new Uint8Array(given.buffer, given.byteOffset, given.byteLength);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer();
}

/** What was decoded, held while it is among the last looked at. */
export class Recent {
  #held = new Map();

  /** @param {number} most how many are held */
  constructor(most) {
    this.most = most;
  }

  /** What has this name, made if it is not held. @template Value @param {string | number} name @param {() => Value} make @returns {Value} */
  get(name, make) {
    const known = this.#held.get(name) ?? make();
    this.#held.delete(name);
    this.#held.set(name, known);
    if (this.#held.size > this.most) this.#held.delete(this.#held.keys().next().value);
    return known;
  }
}

/** What is decoded one layer at a time, by `decode` of who extends it, and held while it is looked at.
 * @template Described @template Decoded */
export class LayerStore {
  #recent = new Recent(LAYERS_HELD);

  /** @param {{get: (name: string) => any}} model @param {Described} described */
  constructor(model, described) {
    this.model = model;
    this.described = described;
  }

  /** One layer by its place. @param {number} place @returns {Promise<Decoded>} */
  layer(place) {
    return this.#recent.get(place, () => this.decode(place));
  }

  /** @abstract @param {number} place @returns {Promise<Decoded>} */
  async decode(place) {
    throw new Error(`Layer ${place} cannot be decoded.`);
  }
}

/** The weights of a record. @extends {LayerStore<DescribedWeights, Layer>} */
export class Layers extends LayerStore {
  /** @param {number} place */
  async decode(place) {
    return decoded(await blob(this.model, `layer${place}`), this.described);
  }
}

/** The weights of a layer, `[head, query, key]`, and with a cut what is left of each row.
 * @param {ArrayBuffer} buffer @param {DescribedWeights} described @returns {Layer} */
function decoded(buffer, { code, kept, shape: [heads, queries, keys] }) {
  const rows = heads * queries;
  const width = kept ?? keys;
  let offset = 0;
  const take = (Kind, length) => {
    // positions and codes may begin at an odd byte, where a typed array may not
    const array = new Kind(buffer.slice(offset, offset + length * Kind.BYTES_PER_ELEMENT));
    offset += length * Kind.BYTES_PER_ELEMENT;
    return array;
  };
  const rest = kept === null ? null : take(Float32Array, rows);
  const places = kept === null ? null : take(Uint16Array, rows * kept);
  const largest = code === "uint8" ? take(Float32Array, rows) : null;
  const codes = take(code === "uint8" ? Uint8Array : Uint16Array, rows * width);
  const values = new Float32Array(rows * width);
  const table = largest ? null : halfFloats();
  const off = new Float32Array(rows);
  for (let row = 0; row < rows; row++) {
    let [factor, sum] = [1, 0];
    if (largest) {
      for (let place = row * width; place < (row + 1) * width; place++) sum += codes[place] * codes[place];
      // a row sums to one again, or to what is kept of it
      const whole = largest[row] ? 1 - (rest ? rest[row] : 0) : 0;
      factor = sum ? whole / sum : 0;
      // how much that has moved every weight of the row
      off[row] = whole ? Math.abs(1 - (sum * largest[row]) / 65025 / whole) : 0;
    }
    for (let place = 0; place < width; place++) {
      const coded = codes[row * width + place];
      values[row * width + place] = largest ? coded * coded * factor : table[coded];
    }
  }
  // half a step of the code at the value, and what bringing the row to its sum has moved it
  const error = (head, query, value) => {
    if (!largest) return value / 2048;
    const row = head * queries + query;
    return (Math.sqrt(value * largest[row]) + largest[row] / 1020) / 255 + value * off[row];
  };
  const at = (head, query, key) => {
    const start = (head * queries + query) * width;
    if (!places) return values[start + key];
    const place = places.subarray(start, start + width).indexOf(key);
    return place < 0 ? 0 : values[start + place];
  };
  return { values, places, rest, at, error };
}

// What Python sends to each view, as types: the payloads that the .py of the same name makes. `make lint` checks the scripts against them.

/** What a name in the state of a view holds (`Kept` in choices.py). */
interface Kept {
  kind: "number" | "numbers" | "switch" | "share" | "text" | "texts" | "places" | "sorting";
  optional: boolean;
  of: "" | "text" | "model";
}

/** Numbers as they travel (`packed` in weights.py): an axis of length 1 stands for all its places. */
interface Packed {
  shape: number[];
  bytes: string;
  /** Decoded when first read. */
  values?: Float32Array;
}

/** The tokens that attend, or those attended to (sides.py). */
interface Side {
  texts: string[];
  joins: number[];
  special: number[];
  words: { text: string; places: number[] }[];
  /** For each token 0 or 1, the sentence of a pair; null for one text. */
  sentences: number[] | null;
  /** What the two are called: A and B, or prompt and answer. */
  pair?: string[];
  sinks: number[];
  /** Queries that attend to nothing. */
  masked?: number[];
}

interface Sides {
  queries: Side;
  keys: Side;
  stack: "encoder" | "decoder" | "cross";
  causal: boolean;
}

/** How weights travel (weights.py): as floats or bytes, all keys of a row or the largest `kept`. */
interface DescribedWeights {
  code: "float16" | "uint8";
  kept: number | null;
  rest: number;
  shape: [number, number, number];
  layers: number[];
  /** Layers whose weights had no room. */
  left_out: number[];
  heads: number[];
  pooled: string | null;
}

interface HeadPayload extends Sides {
  weights: DescribedWeights;
}

interface HeadStatistic {
  name: string;
  title: string;
  unit: string;
  meaning: string;
  values: Packed;
}

interface DescribedMaps {
  shape: [number, number];
  block: [number, number];
  /** Whether a pixel is what its queries give to its keys in the mean, and not the largest weight. */
  mean: boolean;
  units: [number, number];
  pair: Packed;
  weight: Packed;
  hidden: number;
}

interface ModelPayload extends HeadPayload {
  maps: Record<string, DescribedMaps>;
  statistics: HeadStatistic[];
  roles: { names: string[]; places: number[][]; shares: Packed; chances: (number | null)[]; counted: boolean[] };
}

interface NeuronPayload extends Sides {
  vectors: {
    shape: [number, number, number];
    key_count: number;
    key_heads: number[];
    units: number[];
    scaling: number[];
    softcap: number | null;
    biases: (number | null)[];
    bias_heads: number;
    errors: { logits: number[]; weights: number[] };
    layers: number[];
    heads: number[];
  };
}

interface FlowPayload extends Sides {
  layers: number[];
  residual: number;
  readout: number[];
  heads: string;
  code: "float64" | "float32";
  computed: { layers: number[]; sources: number[] };
  saturation: { layer: number; total: number; source: number; token: number }[];
}

interface TracingPayload {
  keys: Side;
  trace: {
    layers: number[];
    heads: number[];
    readout: boolean;
    lines: number | null;
    faintest_line: number;
    lines_left_out: number;
    warnings: string[];
  };
}

interface ScoresMethod {
  name: string;
  signed: boolean;
  shares: boolean;
  rows: boolean;
  map: boolean;
  without: string;
  warnings: string[];
  trust: { value: number; low?: number; high?: number } | null;
}

interface ScoresPayload extends Sides {
  layers: number[];
  methods: ScoresMethod[];
  readout: number[] | null;
  trust: string;
  left_out: Record<string, string>;
  /** The tokens that end a line. */
  breaks: number[];
}

interface ImageMethod {
  name: string;
  scores: (number | null)[][];
  signed: boolean;
  elsewhere: number;
  warnings: string[];
}

interface ImagePayload {
  image: string;
  size: [number, number];
  grid: [number, number];
  heat: string[];
  methods: ImageMethod[];
}

/** The answer token by token, and what was read for it passage by passage (answer_scene.py). */
interface AnswerPayload {
  tokens: string[];
  words: number[][];
  probabilities: number[];
  parts: { name: string; kind: "document" | "question" | "turn" | "answer" | "marker" }[];
  passages: { text: string; part: number }[];
  /** The passages that words are coloured by where none is chosen. */
  context: number[];
  methods: { name: string; signed: boolean; warnings: string[] }[];
  notes: string[];
  drops: boolean;
  dropOfAll: boolean;
}

interface SurveyStatistic {
  name: string;
  title: string;
  unit: string;
  meaning: string;
  labels: { name: string; title: string }[];
  rows: string[][];
  words: Record<string, string>;
  measures: { name: string; title: string; array: Packed }[];
  byLayer: { value: Packed; error?: Packed } | null;
}

interface SurveyRoles {
  names: string[];
  letters: string[];
  colours: string[];
  place: Packed;
  value: Packed;
  error?: Packed;
  evidence?: string[];
  also?: string[];
}

/** Texts once, and for each head its rows: text, attending token, attended token, weight. */
interface Exemplars {
  texts: string[][];
  of: Record<string, [number, number, number, number][]>;
}

interface SurveyPayload {
  card: [string, string][];
  layers: number[];
  heads: number[];
  statistics: SurveyStatistic[];
  roles: SurveyRoles | null;
  exemplars: Exemplars | null;
  roleExemplars: Exemplars | null;
}

interface LearningLook {
  name: string;
  group: string;
  colour: number | null;
  dash: number;
}

interface LearningPayload {
  title: string | null;
  quantities: string[];
  names: LearningLook[];
  grids: number[];
  curves: { quantity: string; name: string; grid: number | null; band: boolean }[];
  recent: string;
}

/** The colours of the style sheet (`colours` in drawing.js). */
interface Palette extends Record<"sequential" | "diverging" | "categorical", string[]> {
  read: (name: string) => string;
}

interface HTMLElement {
  /** What was drawn, for whoever wants to check it against the numbers. */
  scene?: any;
}

declare var attnscopeHost: any;

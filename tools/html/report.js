/*
 * report.js - the HTML report of evprof: timeline, flame graph, table, search.
 *
 * The data stands in the page as blocks that tools/html/pack.h describes; tools/html/export_html.c says what is in which. All
 * times are ns since the start of the trace. Calls are in levels of duration (tools/html/calls.h); a block is unpacked when
 * a view needs it. Nothing here asks a network for anything, and text of the trace becomes text, never HTML.
 *
 *   data        meta, blocks, functions
 *   levels      which blocks a view needs; rows of calls
 *   aggregate   counts a stretch of time anew, from the calls
 *   weights     what flame graph and table show: time, or memory
 *   timeline    tracks, drawing, pointer, keys
 *   flame       the flame graph
 *   table       the table of cProfile
 *   details     the call or function that was clicked
 */
'use strict';

const byId = (id) => document.getElementById(id);
const KINDS = ['Python call', 'generator goes on', 'exception thrown in', 'C call', 'was running already'];
const ENDS = ['was still running', 'returned', 'yielded', 'left by an exception'];
const KIND_RUNNING = 4;
const NATIVE_LIBRARY = 2; /* of functions.native: of a native stack, and its file is the library */
const INSTANTS = {10: 'exception', 16: 'lost', 22: 'fork', 23: 'exec', 24: 'exec_failed', 25: 'exit', 26: 'mark', 27: 'pause'};

/* ---- small things ------------------------------------------------------------------------------------------------ */

function element(tag, attributes = {}, ...children) {
	const made = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes)) {
		if (name.startsWith('on'))
			made.addEventListener(name.slice(2), value);
		else if (value !== null)
			made.setAttribute(name, value);
	}
	made.append(...children);
	return made;
}

/* A line may end behind a slash of the path. */
function breakable(path) {
	return path.split(/(?<=\/)/).flatMap((part) => [part, document.createElement('wbr')]);
}

const count = (number) => number.toLocaleString('en-GB');
const plural = (number, one, many) => `${count(number)} ${number === 1 ? one : many}`;

function duration(ns) {
	const units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']];
	for (const [size, unit] of units)
		if (Math.abs(ns) >= size) {
			const value = ns / size;
			return `${value.toFixed(Math.abs(value) >= 100 ? 1 : Math.abs(value) >= 10 ? 2 : 3)} ${unit}`;
		}
	return `${Math.round(ns)} ns`;
}

function moment(ns) {
	return `${(ns / 1e9).toFixed(9).replace(/(\d{3})(?=\d)/g, '$1\u2009')} s`.replace(/^(\d+)\u2009/, '$1');
}

function bytesText(value) {
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
	let unit = 0;
	while (value >= 1024 && unit < units.length - 1) {
		value /= 1024;
		unit++;
	}
	return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/* Names can hold anything: what would not show, or would turn the line around, is shown as an escape. */
function visible(text) {
	return text.replace(/[\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, (c) => {
		const known = {'\n': '\\n', '\t': '\\t', '\r': '\\r'}[c];
		const code = c.charCodeAt(0);
		return known || (code < 256 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`);
	});
}

const shorten = (text, length) => (text.length > length ? `${text.slice(0, length)}…` : text);

/* Lets the browser paint and take input in between. */
const breathe = () => new Promise((resolve) => {
	const channel = new MessageChannel();
	channel.port1.onmessage = () => {
		channel.port1.close();
		resolve();
	};
	channel.port2.postMessage(0);
});

/* For loops that take long: await slice() now and then. */
function slicer(limit = 12) {
	let began = performance.now();
	return async () => {
		if (performance.now() - began < limit)
			return;
		await breathe();
		began = performance.now();
	};
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

const meta = JSON.parse(byId('meta').textContent);
/* What stands for a call: of samples, a function that was seen in several, one after the other. */
const seen = meta.sampled ? ['call seen', 'calls seen'] : ['call', 'calls'];
const SPAN = Math.max(meta.to - meta.from, 1);

function base64(text) {
	if (Uint8Array.fromBase64)
		return Uint8Array.fromBase64(text);
	const characters = atob(text);
	const bytes = new Uint8Array(characters.length);
	for (let i = 0; i < bytes.length; i++)
		bytes[i] = characters.charCodeAt(i);
	return bytes;
}

/* The columns of a block, as bytes. */
let unpacked = 0;
async function unpack(number) {
	unpacked++;
	const packed = base64(byId(`b${number}`).textContent);
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
	const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
	const view = new DataView(bytes.buffer);
	const columns = [];
	for (let at = 0; at < bytes.length;) {
		const length = view.getUint32(at, true);
		columns.push(bytes.subarray(at + 4, at + 4 + length));
		at += 4 + length;
	}
	return columns;
}

/* The numbers of a column. */
function numbers(bytes) {
	let size = 0;
	for (let i = 0; i < bytes.length; i++)
		size += bytes[i] < 128;
	const values = new Float64Array(size);
	for (let i = 0, k = 0; k < size; k++) {
		let byte = bytes[i++];
		let value = byte & 127;
		for (let scale = 128; byte >= 128; scale *= 128) {
			byte = bytes[i++];
			value += (byte & 127) * scale;
		}
		values[k] = value;
	}
	return values;
}

const signed = (value) => (value % 2 ? -(value + 1) / 2 : value / 2);

/* Texts are decoded when they are asked for: a program of a million functions has three million. */
const texts = {ends: null, bytes: null, whole: null, known: [], decoder: new TextDecoder()};
async function loadTexts() {
	const [lengths, bytes] = await unpack(meta.texts);
	let at = 0;
	texts.ends = numbers(lengths).map((length) => (at += length));
	texts.bytes = bytes;
	/* Where each byte is a character, as nearly always, a text is a part of the whole. */
	const whole = bytes.length < 2 ** 28 ? texts.decoder.decode(bytes) : '';
	texts.whole = whole.length === bytes.length ? whole : null;
}

function textAt(i) {
	if (texts.known[i] === undefined) {
		const [from, to] = [i ? texts.ends[i - 1] : 0, texts.ends[i]];
		texts.known[i] = visible(texts.whole === null ? texts.decoder.decode(texts.bytes.subarray(from, to)) : texts.whole.slice(from, to));
	}
	return texts.known[i];
}

/* Functions: the table as evprof counted it, over the whole of what was exported. */
const functions = {count: 0};
async function loadFunctions() {
	const columns = (await unpack(meta.functions)).map(numbers);
	const names = ['display', 'name', 'file', 'line', 'native', 'calls', 'recursive', 'own', 'total', 'longest', 'longestStart', 'longestThread'];
	names.forEach((name, i) => {
		functions[name] = columns[i];
	});
	functions.count = functions.line.length;
	findShortFiles();
	functions.match = null; /* Uint8Array while there is a search */
}

/* Files by the end of their path that no other has: app.py, but pkg/__init__.py. */
const shortFiles = new Map();
function findShortFiles() {
	const numbered = new Set(functions.file.filter((_, f) => !functions.native[f]));
	const files = [...numbered].map((i) => [textAt(i), textAt(i).split('/')]);
	let open = files;
	for (let parts = 1; open.length; parts++) {
		const seen = new Map();
		const end = ([, path]) => path.slice(-parts).join('/');
		for (const file of files)
			seen.set(end(file), (seen.get(end(file)) || 0) + 1);
		for (const file of open)
			shortFiles.set(file[0], end(file));
		open = open.filter((file) => seen.get(end(file)) > 1 && file[1].length > parts);
	}
}
const shortFile = (file) => shortFiles.get(file) || file;

/* Half of a program is called <module>: its file says which. */
function functionName(f) {
	const name = textAt(functions.display[f]) || '(no name)';
	return name === '<module>' ? `<module> ${shortFile(functionFile(f))}` : name;
}
const functionFile = (f) => textAt(functions.file[f]);
function functionPlace(f) {
	if (functions.native[f] === NATIVE_LIBRARY)
		return `native function · ${functionFile(f)}`;
	return functions.native[f] ? `C function · ${textAt(functions.name[f])}` : `${functionFile(f)}:${functions.line[f]}`;
}
/* As pstats prints it. */
function functionStandard(f) {
	const name = textAt(functions.name[f]);
	if (functions.native[f] === NATIVE_LIBRARY)
		return `${name} (${functionFile(f)})`;
	if (!functions.native[f])
		return `${functionFile(f)}:${functions.line[f]}(${name})`;
	return name.startsWith('<') && name.endsWith('>') ? `{${name.slice(1, -1)}}` : name;
}

function threadName(t) {
	const thread = meta.threads[t];
	return textAt(thread.name) || `thread ${thread.tid}`;
}
function processName(p) {
	const process = meta.processes[p];
	return `${textAt(process.program) || 'python'}  ${process.pid}`;
}

/* ---- levels ------------------------------------------------------------------------------------------------------ */

const levelNs = (level) => (level ? 16384 * 4 ** (level - 1) : 0);

/* By thread and kind (level * 2, + 1 for slivers): the segments in order of time. */
let segments = [];

async function loadDirectory() {
	const [kind, block, thread, size, from, to] = (await unpack(meta.directory)).map(numbers);
	const used = new Map();
	segments = meta.threads.map(() => []);
	for (let i = 0; i < kind.length; i++) {
		const first = used.get(block[i]) || 0;
		used.set(block[i], first + size[i]);
		const segment = {block: block[i], first, count: size[i], from: from[i], to: to[i], sliver: kind[i] % 2 === 1,
			level: Math.floor(kind[i] / 2), rows: null};
		(segments[thread[i]][kind[i]] ||= []).push(segment);
		(blockSegments[block[i]] ||= []).push(segment);
	}
}

const blockSegments = [];

/* Calls in the order in which they ended, as they are stored. */
function decodeCalls(columns, segment) {
	const [end, took, fn, depth, how, sequence] = columns;
	const {first, count: size} = segment;
	const calls = {end: new Float64Array(size), start: new Float64Array(size), fn: fn.subarray(first, first + size),
		depth: new Uint16Array(size), how: how.subarray(first, first + size), sequence: new Float64Array(size)};
	let now = 0;
	let row = 0;
	let next = 0;
	for (let i = 0; i < size; i++) {
		now += end[first + i];
		row += signed(depth[first + i]);
		next += sequence[first + i];
		calls.end[i] = now;
		calls.start[i] = now - took[first + i];
		calls.depth[i] = row;
		calls.sequence[i] = next++;
	}
	return calls;
}

function decodeSlivers(columns, segment) {
	const [bucket, depth, fn, size, cover] = columns;
	const {first, count: length} = segment;
	const width = levelNs(segment.level);
	const slivers = {start: new Float64Array(length), end: new Float64Array(length), fn: fn.subarray(first, first + length),
		depth: Uint16Array.from(depth.subarray(first, first + length)), calls: size.subarray(first, first + length),
		cover: cover.subarray(first, first + length)};
	let at = 0;
	for (let i = 0; i < length; i++) {
		at += bucket[first + i];
		slivers.start[i] = at * width;
		slivers.end[i] = at * width + width;
	}
	return slivers;
}

/* The same sorted by depth, then time: rows.first[d] to rows.first[d + 1]. */
function makeRows(calls, extra) {
	const size = calls.depth.length;
	let deepest = 0;
	for (let i = 0; i < size; i++)
		deepest = Math.max(deepest, calls.depth[i]);
	const first = new Uint32Array(deepest + 2);
	for (let i = 0; i < size; i++)
		first[calls.depth[i] + 1]++;
	for (let d = 0; d <= deepest; d++)
		first[d + 1] += first[d];
	const next = first.slice();
	const rows = {first, depths: deepest + 1, start: new Float64Array(size), end: new Float64Array(size), fn: new Uint32Array(size)};
	for (const name of extra)
		rows[name] = new Uint32Array(size);
	for (let i = 0; i < size; i++) {
		const at = next[calls.depth[i]]++;
		rows.start[at] = calls.start[i];
		rows.end[at] = calls.end[i];
		rows.fn[at] = calls.fn[i];
		for (const name of extra)
			rows[name][at] = calls[name][i];
	}
	return rows;
}

/* Blocks that are unpacked, the latest used last, with the number of the drawing that used them. */
const cache = {blocks: new Map(), most: 160, drawing: 0, loading: new Map(), queue: [], busy: 0};

async function unpackBlock(number) {
	const columns = (await unpack(number)).map(numbers);
	const slice = slicer(6);
	for (const segment of blockSegments[number]) {
		segment.rows = segment.sliver ? makeRows(decodeSlivers(columns, segment), ['calls', 'cover'])
			: makeRows(decodeCalls(columns, segment), ['how']);
		await slice();
	}
	touchBlock(number);
	while (cache.blocks.size > cache.most) {
		const [oldest, drawn] = cache.blocks.entries().next().value;
		if (drawn >= cache.drawing - 2)
			break; /* the view needs them all */
		cache.blocks.delete(oldest);
		for (const segment of blockSegments[oldest])
			segment.rows = null;
	}
}

function nextOfQueue() {
	while (cache.busy < 2 && cache.queue.length) {
		const job = cache.queue.pop();
		cache.busy++;
		unpackBlock(job.number).then(job.resolve, job.reject).finally(() => {
			cache.busy--;
			cache.loading.delete(job.number);
			nextOfQueue();
		});
	}
}

/* A promise for a block's rows; what was asked for last comes first. */
function loadBlock(number) {
	if (!cache.loading.has(number))
		cache.loading.set(number, new Promise((resolve, reject) => {
			cache.queue.push({number, resolve, reject});
			nextOfQueue();
		}));
	return cache.loading.get(number);
}

function touchBlock(number) {
	cache.blocks.delete(number);
	cache.blocks.set(number, cache.drawing);
}

/* The segments of a thread and kind that reach into a stretch. Ends are in order. */
function segmentsIn(thread, kind, from, to) {
	const all = segments[thread][kind];
	if (!all)
		return [];
	let low = 0;
	for (let high = all.length; low < high;) {
		const middle = (low + high) >> 1;
		if (all[middle].to < from)
			low = middle + 1;
		else
			high = middle;
	}
	const found = [];
	for (let i = low; i < all.length; i++)
		if (all[i].from <= to)
			found.push(all[i]);
	return found;
}

/* The level whose shortest call is still shorter than a pixel. */
function levelFor(pixel) {
	let level = meta.floor;
	while (level < meta.top && levelNs(level + 1) <= pixel)
		level++;
	return level;
}

/* What a thread shows of a stretch at a level: calls of this level and up, and the slivers of what is shorter. */
function neededSegments(thread, level, from, to) {
	/* Where the shortest calls were left out, even the finest level has slivers in their place. */
	let needed = level || meta.shortest ? segmentsIn(thread, Math.max(level, 1) * 2 + 1, from, to) : [];
	for (let k = level; k <= meta.top; k++)
		needed = needed.concat(segmentsIn(thread, k * 2, from, to));
	return needed;
}

/* Segments that are ready, at the wanted level or the next coarser one that is; what is missing is asked for. */
function readySegments(thread, level, from, to, changed) {
	let wanted = null;
	for (let k = level; k <= meta.top; k++) {
		const needed = neededSegments(thread, k, from, to);
		const missing = needed.filter((segment) => !segment.rows);
		if (!missing.length) {
			for (const segment of needed)
				touchBlock(segment.block);
			return needed;
		}
		if (!wanted) {
			wanted = needed;
			for (const segment of missing)
				if (!cache.loading.has(segment.block))
					loadBlock(segment.block).then(changed);
		}
	}
	return wanted.filter((segment) => segment.rows);
}

/* First index of a row whose end is not before the time. */
function lowerBound(array, low, high, value) {
	while (low < high) {
		const middle = (low + high) >> 1;
		if (array[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- aggregate: a stretch counted from its calls --------------------------------------------------------------------- */

function newTree() {
	return {parent: [0], fn: [0], calls: [0], total: [0], process: [-1], children: new Map()};
}

function treeChild(tree, parent, fn, process) {
	const key = parent * 4194304 + fn;
	let node = tree.children.get(key);
	if (node === undefined) {
		node = tree.parent.length;
		tree.children.set(key, node);
		tree.parent.push(parent);
		tree.fn.push(fn);
		tree.calls.push(0);
		tree.total.push(0);
		tree.process.push(process);
	}
	return node;
}

/* The calls of one level of a thread, the last to end first. */
class Backwards {
	constructor(list) {
		this.list = list;
		this.at = -1;
		this.calls = null;
	}
	async ready() {
		while (this.at < 0 && this.list.length) {
			const segment = this.list.pop();
			this.calls = decodeCalls((await unpack(segment.block)).map(numbers), segment);
			this.at = segment.count - 1;
		}
		return this.at >= 0;
	}
	get sequence() {
		return this.at < 0 ? -1 : this.calls.sequence[this.at];
	}
}

/* Counts one thread's calls in the stretch: backwards, a caller comes before what it called. */
class Counter {
	constructor(result, process, from, to) {
		Object.assign(this, {result, from, to, process});
		this.root = treeChild(result.tree, 0, process, process);
		this.nodes = [];
		this.fns = [];
		this.open = result.open;
	}
	add(start, end, fn, depth, how) {
		const {result, nodes, fns, open} = this;
		const tree = result.tree;
		if (end < this.from || start >= this.to || (end === this.from && start < end))
			return;
		while (nodes.length > depth) {
			nodes.pop();
			open[fns.pop()]--;
		}
		const called = Math.floor(how / 8) !== KIND_RUNNING && start >= this.from ? 1 : 0;
		const took = Math.min(end, this.to) - Math.max(start, this.from);
		const parent = nodes.length ? nodes[nodes.length - 1] : this.root;
		const node = treeChild(tree, parent, fn, this.process);
		tree.calls[node] += called;
		tree.total[node] += took;
		if (parent === this.root)
			tree.total[parent] += took;
		else
			result.own[fns[fns.length - 1]] -= took;
		result.calls[fn] += called;
		result.own[fn] += took;
		if (open[fn])
			result.recursive[fn] += called;
		else
			result.total[fn] += took;
		result.counted += called;
		open[fn]++;
		nodes.push(node);
		fns.push(fn);
	}
	end() {
		while (this.nodes.length) {
			this.nodes.pop();
			this.open[this.fns.pop()]--;
		}
	}
}

async function aggregateThread(counter, thread, from, to, cancelled, progress) {
	const streams = [];
	const slice = slicer();
	for (let level = meta.floor; level <= meta.top; level++) {
		const list = segmentsIn(thread, level * 2, from, to);
		if (list.length)
			streams.push(new Backwards(list));
	}
	for (;;) {
		let best = null;
		let second = -1;
		for (const stream of streams) {
			if (stream.at < 0 && stream.list.length) {
				await stream.ready();
				await slice();
			}
			if (!best || stream.sequence > best.sequence) {
				second = best ? Math.max(second, best.sequence) : second;
				best = stream;
			} else {
				second = Math.max(second, stream.sequence);
			}
		}
		if (!best || best.at < 0 || cancelled())
			return;
		const {start, end, fn, depth, how, sequence} = best.calls;
		let i = best.at;
		const stop = Math.max(0, i - 8191);
		for (; i >= stop && sequence[i] > second; i--)
			counter.add(start[i], end[i], fn[i], depth[i], how[i]);
		progress.done += best.at - i;
		best.at = i;
		await slice();
	}
}

/* Counts the calls of a stretch: like functions, and a tree. Null when it was cancelled. */
async function aggregate(from, to, cancelled = () => false, progress = {done: 0, tell: () => {}}) {
	const fresh = () => new Float64Array(functions.count);
	const result = {from, to, calls: fresh(), recursive: fresh(), own: fresh(), total: fresh(), open: fresh(), tree: newTree(), counted: 0};
	for (let t = 0; t < meta.threads.length && !cancelled(); t++) {
		const counter = new Counter(result, meta.threads[t].process, from, to);
		await aggregateThread(counter, t, from, to, cancelled, progress);
		counter.end();
		progress.tell();
	}
	return cancelled() ? null : result;
}

/* ---- colours ----------------------------------------------------------------------------------------------------- */

const dark = matchMedia('(prefers-color-scheme: dark)');
const palette = {};

/* OKLCH as 0xBBGGRR: colours of equal lightness, so that the text on them can be read on each. */
function oklch(lightness, chroma, hue) {
	const a = chroma * Math.cos(hue * Math.PI / 180);
	const b = chroma * Math.sin(hue * Math.PI / 180);
	const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
	const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
	const s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3;
	const linear = [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
		-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
		-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s];
	return linear.reduce((word, value, i) => {
		const clipped = Math.min(Math.max(value, 0), 1);
		const part = clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055;
		return word | Math.round(part * 255) << (8 * i);
	}, 0);
}

const cssColour = (word) => `rgb(${word & 255} ${word >> 8 & 255} ${word >> 16 & 255})`;

function hash(text) {
	let value = 2166136261;
	for (let i = 0; i < text.length; i++)
		value = Math.imul(value ^ text.charCodeAt(i), 16777619);
	return (value ^ value >>> 15) >>> 0;
}

/* A hue for each file, the most expensive files first, so that what is seen most differs most. */
function fileHues() {
	const own = new Map();
	for (let f = 0; f < functions.count; f++)
		if (!functions.native[f])
			own.set(functions.file[f], (own.get(functions.file[f]) || 0) + functions.own[f]);
	const hues = new Map();
	[...own].sort((a, b) => b[1] - a[1]).forEach(([file], i) => hues.set(file, (245 + i * 137.508) % 360));
	return hues;
}

function makePalette() {
	const style = getComputedStyle(document.documentElement);
	for (const name of ['back', 'raised', 'line', 'text', 'faint', 'accent', 'found', 'bad', 'curve', 'bar'])
		palette[name] = style.getPropertyValue(`--${name}`).trim();
	palette.foundWord = dark.matches ? oklch(0.5, 0.115, 75) : oklch(0.83, 0.165, 80);
	palette.otherWord = dark.matches ? oklch(0.3, 0.005, 250) : oklch(0.91, 0.005, 250);
	palette.hues = fileHues();
	palette.words = new Uint32Array(functions.count); /* 0: not asked for yet */
}

function makeWord(f) {
	const mixed = hash(functionName(f));
	const shade = (mixed % 5 - 2) * 0.017;
	const native = functions.native[f];
	const library = native === NATIVE_LIBRARY;
	const hue = library ? hash(functionFile(f)) % 360 : native ? 260 : palette.hues.get(functions.file[f]) + (mixed >> 8) % 5 * 8 - 16;
	if (dark.matches)
		return oklch((native ? 0.38 : 0.45) + shade, library ? 0.035 : native ? 0.012 : 0.085, hue);
	return oklch((native ? 0.88 : 0.84) + shade, library ? 0.03 : native ? 0.008 : 0.08, hue);
}

const ownWord = (f) => (palette.words[f] ||= makeWord(f));

function functionWord(f) {
	if (!functions.match)
		return ownWord(f);
	return functions.match[f] ? palette.foundWord : palette.otherWord;
}

/* ---- timeline ---------------------------------------------------------------------------------------------------- */

const ROW = 18;
const LOW_ROW = 4;
const PROCESS_ROW = 26;
const NAME_ROW = 20;
const HEAP_ROW = 46;
const HIGH_HEAP_ROW = 96; /* while it is memory that is shown */
const SHORTEST_VIEW = 100; /* ns */

const view = {from: meta.from, to: meta.to, width: 1, height: 1, ratio: 1, low: false};
const selection = {call: null, stretch: null, fn: -1};
let weight = null;
let tracks = [];
let tracksHeight = 0;
let heaps = [];
let instants = null;
let tasks = null;
let activity = null;
let drawAsked = false;

const canvases = {};
for (const name of ['overview', 'ruler', 'calls', 'flame'])
	canvases[name] = {element: byId(name), context: byId(name).getContext('2d', {alpha: false})};
const font = '11.5px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

const pixelNs = () => (view.to - view.from) / view.width;
const timeAt = (x) => view.from + x * pixelNs();
const xOf = (ns) => (ns - view.from) / pixelNs();

function setView(from, to) {
	const margin = SPAN * 0.02;
	let span = Math.min(Math.max(to - from, SHORTEST_VIEW), SPAN + 2 * margin);
	let middle = (from + to) / 2;
	if (to - from > span)
		middle = Math.min(Math.max(middle, meta.from + SPAN / 2), meta.from + SPAN / 2);
	from = Math.min(Math.max(middle - span / 2, meta.from - margin), meta.to + margin - span);
	from = Math.max(from, meta.from - margin);
	view.from = from;
	view.to = from + span;
	draw();
}

function zoomAt(factor, x) {
	const at = timeAt(x);
	const span = Math.min(Math.max((view.to - view.from) * factor, SHORTEST_VIEW), SPAN * 1.04);
	const from = at - (x / view.width) * span;
	setView(from, from + span);
}

const wholeView = () => setView(meta.from - SPAN * 0.01, meta.to + SPAN * 0.01);

async function loadTimeline() {
	const [process, shift, block, points, peakTime, end] = (await unpack(meta.heaps)).map(numbers);
	heaps = [];
	for (let i = 0, columns, next; i < process.length; i++) {
		if (!i || block[i] !== block[i - 1]) {
			columns = (await unpack(block[i])).map(numbers);
			next = 0;
		}
		const [stretch, low, above, last] = columns.map((column) => column.subarray(next, next + points[i]));
		next += points[i];
		const width = 2 ** shift[i];
		let at = 0;
		const heap = {process: process[i], width, time: stretch.map((step) => (at += step) * width), low,
			high: low.map((value, k) => value + above[k]), last: low.map((value, k) => value + last[k]),
			peakTime: peakTime[i], end: end[i] ? end[i] - 1 : null};
		heap.peak = heap.high.reduce((most, value) => Math.max(most, value), 0);
		heaps.push(heap);
	}
	const [thread, time, kind, value] = (await unpack(meta.instants)).map(numbers);
	instants = meta.threads.map(() => []);
	for (let i = 0; i < thread.length; i++)
		instants[thread[i]].push({time: time[i], kind: kind[i], value: value[i]});
	[activity] = (await unpack(meta.activity)).map(numbers);
	await loadTasks();
}

/* By thread: its tasks by the number of their names, and the steps of each, in order. */
async function loadTasks() {
	const [thread, start, length, name] = (await unpack(meta.steps)).map(numbers);
	tasks = meta.threads.map(() => new Map());
	for (let i = 0; i < thread.length; i++) {
		const own = tasks[thread[i]];
		if (!own.has(name[i]))
			own.set(name[i], []);
		own.get(name[i]).push({start: start[i], end: start[i] + length[i]});
	}
}

/* Processes, heaps, and threads with their tasks, one below the other. */
function makeTracks() {
	const busy = meta.threads.filter((thread) => thread.depth).length;
	const heapOf = new Map(heaps.map((heap) => [heap.process, heap]));
	const threadsOf = meta.processes.map(() => []);
	let opened = 0;
	tracks = [];
	meta.threads.forEach((thread, t) => threadsOf[thread.process].push(t));
	meta.processes.forEach((process, p) => {
		tracks.push({kind: 'process', process: p});
		if (heapOf.has(p))
			tracks.push({kind: 'heap', process: p, heap: heapOf.get(p)});
		for (const t of threadsOf[p]) {
			const {depth} = meta.threads[t];
			tracks.push({kind: 'thread', process: p, thread: t, depth, open: busy <= 12 || (depth > 0 && opened++ < 6)});
			for (const [name, steps] of tasks[t])
				tracks.push({kind: 'task', process: p, name: textAt(name), steps});
		}
	});
	placeTracks();
}

function rowHeight(track) {
	return view.low || !track.open ? LOW_ROW : ROW;
}

function placeTracks() {
	let y = 0;
	for (const track of tracks) {
		track.y = y;
		if (track.kind === 'process')
			track.height = PROCESS_ROW;
		else if (track.kind === 'heap')
			track.height = weight.memory ? HIGH_HEAP_ROW : HEAP_ROW;
		else if (track.kind === 'task')
			track.height = NAME_ROW;
		else
			track.height = NAME_ROW + (track.open ? track.depth : Math.min(track.depth, 6)) * rowHeight(track) + (track.depth ? 6 : 0);
		y += track.height;
	}
	tracksHeight = y + 8;
	byId('height').style.height = `${tracksHeight}px`;
	drawnNames = '';
	draw();
}

function visibleTracks() {
	const top = byId('tracks').scrollTop;
	return tracks.filter((track) => track.y + track.height > top && track.y < top + view.height);
}

/* --- names at the left: HTML, so that they can be read, focused and pressed --- */

let drawnNames = '';

function threadTitle(track) {
	const thread = meta.threads[track.thread];
	return `${threadName(track.thread)} · thread ${thread.tid} · ${plural(thread.calls, ...seen)}${thread.lost ? ` · ${count(thread.lost)} events lost` : ''}`;
}

function nameOf(track) {
	if (track.kind === 'process') {
		const process = meta.processes[track.process];
		const end = process.signal ? `ended by signal ${process.signal}` : process.status > 0 ? `exit status ${process.status}` : '';
		return element('div', {class: 'track process', title: [process.arguments.map((i) => textAt(i)).join(' '), end].filter(Boolean).join(' · ')}, processName(track.process));
	}
	if (track.kind === 'heap')
		return element('div', {class: 'track heap'}, "Python's heap", element('br'), `peak ${bytesText(track.heap.peak)}`);
	if (track.kind === 'task')
		return element('div', {class: 'track task', title: `${track.name} · ${plural(track.steps.length, 'step', 'steps')}`}, track.name);
	const name = threadName(track.thread);
	return element('button', {class: 'track', type: 'button', 'aria-expanded': track.open, title: threadTitle(track), onclick: () => {
		track.open = !track.open;
		placeTracks();
	}}, name, element('span', {}, name.startsWith('thread ') || !meta.threads[track.thread].tid ? '' : `  ${meta.threads[track.thread].tid}`));
}

function drawNames(shown) {
	const top = byId('tracks').scrollTop;
	const key = `${top}|${view.height}|${shown.map((track) => `${track.y},${track.open}`).join()}`;
	if (key === drawnNames)
		return;
	drawnNames = key;
	const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.track : undefined;
	byId('names').replaceChildren(...shown.map((track) => {
		const made = nameOf(track);
		made.dataset.track = tracks.indexOf(track);
		/* The name of a thread stays as long as any of its rows is there. */
		const held = track.kind === 'thread' ? Math.min(top, track.y + track.height - NAME_ROW) : 0;
		made.style.top = `${Math.max(track.y, held) - top}px`;
		made.style.height = `${track.kind === 'thread' ? NAME_ROW : track.height}px`;
		return made;
	}));
	if (focused !== undefined) {
		const again = byId('names').querySelector(`button[data-track="${focused}"]`);
		if (again)
			again.focus();
	}
}

/* --- drawing --- */

function draw() {
	if (drawAsked)
		return;
	drawAsked = true;
	requestAnimationFrame(() => {
		drawAsked = false;
		drawNow();
	});
}

/* Sets a canvas to the size it has on the screen. Returns whether there is anything to draw on. */
function fit(canvas, width, height) {
	const {element: target, context} = canvas;
	const ratio = window.devicePixelRatio || 1;
	const w = Math.max(1, Math.round(width * ratio));
	const h = Math.max(1, Math.round(height * ratio));
	if (target.width !== w || target.height !== h) {
		target.width = w;
		target.height = h;
		target.style.height = `${height}px`;
	}
	canvas.width = width;
	canvas.height = height;
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.fillStyle = palette.back;
	context.fillRect(0, 0, width, height);
	context.font = font;
	context.textBaseline = 'middle';
	return width > 1 && height > 1;
}

function drawNow() {
	cache.drawing++;
	drawTracks();
	drawOverview();
	drawRuler();
}

function drawOverview() {
	const canvas = canvases.overview;
	const {context} = canvas;
	const width = canvas.element.clientWidth;
	if (!fit(canvas, width, 33))
		return;
	const most = activity.reduce((a, b) => Math.max(a, b), 1);
	context.fillStyle = palette.curve;
	context.beginPath();
	context.moveTo(0, 33);
	for (let x = 0; x < width; x++) {
		const first = Math.floor((x / width) * activity.length);
		const last = Math.max(first + 1, Math.floor(((x + 1) / width) * activity.length));
		let value = 0;
		for (let i = first; i < last; i++)
			value = Math.max(value, activity[i]);
		context.lineTo(x + 0.5, 32 - 28 * Math.sqrt(value / most));
	}
	context.lineTo(width, 33);
	context.fill();
	const [a, b] = [view.from, view.to].map((ns) => ((ns - meta.from) / SPAN) * width);
	context.globalAlpha = 0.72;
	context.fillStyle = palette.back;
	context.fillRect(0, 0, a, 33);
	context.fillRect(b, 0, width - b, 33);
	context.globalAlpha = 1;
	context.strokeStyle = palette.accent;
	context.lineWidth = 1.5;
	context.strokeRect(Math.max(a, 0) + 0.75, 1, Math.max(Math.min(b, width) - Math.max(a, 0) - 1.5, 2), 31);
	if (selection.stretch) {
		const [c, d] = [selection.stretch.from, selection.stretch.to].map((ns) => ((ns - meta.from) / SPAN) * width);
		context.fillStyle = palette.found;
		context.fillRect(c, 29, Math.max(d - c, 2), 4);
	}
}

/* A step of 1, 2 or 5 times a power of ten with marks at least so many pixels apart. */
function rulerStep(pixels) {
	const least = pixels * pixelNs();
	const power = 10 ** Math.floor(Math.log10(least));
	return [1, 2, 5, 10].map((k) => k * power).find((step) => step >= least);
}

function rulerUnit(step) {
	return [[1e9, 's', Infinity], [1e6, 'ms', 1e9], [1e3, 'µs', 1e6], [1, 'ns', 1e3]].find(([size]) => step >= size * 0.999) || [1, 'ns', 1e3];
}

function drawRuler() {
	const canvas = canvases.ruler;
	const {context} = canvas;
	if (!fit(canvas, canvas.element.clientWidth, 23))
		return;
	const step = Math.max(rulerStep(90), 1);
	let [size, unit, above] = rulerUnit(step);
	let base = 0;
	/* 3.992 s rather than 3,992 ms; where that needs too many digits, what is common to all stands at the left. */
	if (view.to >= above && (above === 1e9 || view.to < above * 1000))
		[size, unit] = rulerUnit(above);
	else if (view.to >= above)
		base = Math.floor(Math.max(view.from, 0) / above) * above;
	byId('base').textContent = base ? `${moment(base).replace(/(\.000)?(\u2009000)* s$/, ' s')} +` : '';
	context.fillStyle = palette.faint;
	context.strokeStyle = palette.line;
	context.beginPath();
	for (let k = Math.ceil(view.from / step); k * step <= view.to; k++) {
		const x = Math.round(xOf(k * step)) + 0.5;
		const label = (k * step - base) / size || 0; /* never -0 */
		context.moveTo(x, 15);
		context.lineTo(x, 23);
		context.fillText(`${count(Math.round(label * 1000) / 1000)} ${unit}`, x + 4, 12);
	}
	context.stroke();
	drawStretch(context, 23);
}

/* What is not selected is dimmed. */
function drawStretch(context, height) {
	if (!selection.stretch)
		return;
	const a = Math.round(xOf(selection.stretch.from));
	const b = Math.round(xOf(selection.stretch.to));
	context.fillStyle = palette.back;
	context.globalAlpha = 0.65;
	context.fillRect(0, 0, a, height);
	context.fillRect(b, 0, view.width - b, height);
	context.globalAlpha = 1;
	context.fillStyle = palette.found;
	context.fillRect(a - 2, 0, 2, height);
	context.fillRect(b, 0, 2, height);
}

/*
 * The rows of calls are drawn into one line of pixels each, which is then stretched to the height of a row: the cost is
 * that of the calls looked at, whatever their number on a pixel. A pixel has the colour of the call with the largest
 * part in it, and is as dense as calls cover it.
 */
const lines = {canvas: document.createElement('canvas'), context: null, image: null, pixels: null, cover: null, best: null, word: null, count: 0};
lines.context = lines.canvas.getContext('2d');

function prepareLines(width, rows) {
	if (lines.canvas.width !== width || lines.canvas.height < rows) {
		lines.canvas.width = width;
		lines.canvas.height = Math.max(rows, 64);
		lines.image = lines.context.createImageData(width, lines.canvas.height);
		lines.pixels = new Uint32Array(lines.image.data.buffer);
		lines.cover = new Float32Array(width);
		lines.best = new Float32Array(width);
		lines.word = new Uint32Array(width);
	}
	lines.pixels.fill(0, 0, width * rows);
	lines.count = 0;
}

function addPart(x, part, word, weight) {
	lines.cover[x] += part;
	if (part * weight > lines.best[x]) {
		lines.best[x] = part * weight;
		lines.word[x] = word;
	}
}

function addSpan(a, b, word, weight, width) {
	const first = Math.max(Math.floor(a), 0);
	const last = Math.min(Math.floor(b), width - 1);
	if (first > last)
		return;
	if (first === last) {
		addPart(first, Math.max(Math.min(b, width) - Math.max(a, 0), 0.02), word, weight);
		return;
	}
	addPart(first, Math.min(first + 1 - a, 1), word, weight);
	for (let x = first + 1; x < last; x++) {
		lines.cover[x] = 1;
		lines.best[x] = weight;
		lines.word[x] = word;
	}
	addPart(last, Math.min(b - last, 1), word, weight);
}

function addRow(segment, depth, scale, width, labels) {
	const {rows} = segment;
	if (depth >= rows.depths)
		return;
	const {start, end, fn} = rows;
	const matching = functions.match;
	const gap = view.ratio;
	for (let i = lowerBound(end, rows.first[depth], rows.first[depth + 1], view.from); i < rows.first[depth + 1] && start[i] <= view.to; i++) {
		const a = (start[i] - view.from) * scale;
		let b = (end[i] - view.from) * scale;
		const f = fn[i];
		const word = functionWord(f);
		const weight = matching && matching[f] ? 1000 : 1;
		if (segment.sliver) {
			const covered = rows.cover[i] / 255;
			addSpan(a, a + (b - a) * Math.max(covered, 0.05), word, weight * 0.5, width);
			continue;
		}
		if (b - a > 3 * gap)
			b -= gap; /* so that calls in a row are told apart */
		addSpan(a, b, word, weight, width);
		if (labels && b - a > 26 * gap)
			labels.push({a: Math.max(a, 0) / gap, b: Math.min(b, width) / gap, f, y: labels.y});
	}
}

function finishLine(width) {
	const {cover, best, word, pixels} = lines;
	const offset = lines.count++ * width;
	for (let x = 0; x < width; x++) {
		if (!cover[x])
			continue;
		const alpha = best[x] >= 20 ? 255 : Math.round(255 * Math.min(0.28 + 0.72 * cover[x], 1));
		pixels[offset + x] = word[x] | alpha << 24;
		cover[x] = 0;
		best[x] = 0;
	}
}

/*
 * Names are drawn once into a canvas of their own and copied from there: shaping text is what would make zooming slow. A
 * name that is longer than its slot is drawn as text where there is more room than that.
 */
const SLOT_WIDTH = 240;
const SLOT_HEIGHT = 18;
const SLOT_COLUMNS = 4;
const SLOT_ROWS = 160;
const atlas = {canvas: document.createElement('canvas'), drawing: 0, slots: new Map(), owners: [], next: 0, ratio: 0, ellipsis: 0, letters: new Map()};
atlas.context = atlas.canvas.getContext('2d');

function clearAtlas() {
	const ratio = window.devicePixelRatio || 1;
	atlas.canvas.width = SLOT_WIDTH * SLOT_COLUMNS * ratio;
	atlas.canvas.height = SLOT_HEIGHT * SLOT_ROWS * ratio;
	atlas.ratio = ratio;
	atlas.slots.clear();
	atlas.owners = [];
	atlas.letters.clear();
	atlas.next = 0;
	const {context} = atlas;
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.font = font;
	context.textBaseline = 'middle';
	context.fillStyle = palette.text;
	atlas.ellipsis = context.measureText('…').width;
}

function letterWidth(letter) {
	let width = atlas.letters.get(letter);
	if (width === undefined) {
		width = atlas.context.measureText(letter).width;
		atlas.letters.set(letter, width);
	}
	return width;
}

/* About where each letter ends, until the slot is full: kerning is not in it. */
function letterEnds(letters) {
	const ends = [];
	let at = 0;
	for (const letter of letters) {
		at += letterWidth(letter);
		if (at > SLOT_WIDTH)
			break;
		ends.push(at);
	}
	return ends;
}

/* The width of the first letters of a slot's name, exactly: a cut at any other place shows half a letter. */
function prefixWidth(slot, count) {
	slot.prefixes[count] ??= atlas.context.measureText(slot.letters.slice(0, count).join('')).width;
	return slot.prefixes[count];
}

/* A text that is cut, with an ellipsis, where there is no room for it; for the few that are in no slot. */
function cutText(context, text, room) {
	if (context.measureText(text).width <= room)
		return text;
	const letters = [...text];
	let fits = 0, over = letters.length;
	while (over - fits > 1) {
		const half = (fits + over) >> 1;
		if (context.measureText(`${letters.slice(0, half).join('')}…`).width <= room)
			fits = half;
		else
			over = half;
	}
	return fits < 2 ? '' : `${letters.slice(0, fits).join('').trimEnd()}…`;
}

/* The slot with a function's name; null if those of this picture fill all. */
function labelSlot(f, drawing) {
	let slot = atlas.slots.get(f);
	if (slot) {
		slot.drawing = drawing;
		return slot;
	}
	const number = atlas.next % (SLOT_COLUMNS * SLOT_ROWS);
	const owner = atlas.owners[number];
	if (owner !== undefined && atlas.slots.get(owner).drawing === drawing)
		return null;
	atlas.slots.delete(owner);
	atlas.owners[number] = f;
	atlas.next++;
	const name = shorten(functionName(f), 200);
	const letters = [...name];
	slot = {x: (number % SLOT_COLUMNS) * SLOT_WIDTH, y: Math.floor(number / SLOT_COLUMNS) * SLOT_HEIGHT, letters, ends: letterEnds(letters),
		prefixes: [], width: atlas.context.measureText(name).width, drawing};
	atlas.slots.set(f, slot);
	atlas.context.save();
	atlas.context.beginPath();
	atlas.context.rect(slot.x, slot.y, SLOT_WIDTH, SLOT_HEIGHT);
	atlas.context.clip();
	atlas.context.clearRect(slot.x, slot.y, SLOT_WIDTH, SLOT_HEIGHT);
	atlas.context.fillText(name, slot.x, slot.y + SLOT_HEIGHT / 2 + 0.5);
	atlas.context.restore();
	return slot;
}

function copyLabel(context, {a, b, f, y}, slot) {
	const {ratio} = atlas;
	const room = b - a - 8;
	const left = Math.round((a + 4) * ratio) / ratio;
	let width = Math.min(slot.width + 1, SLOT_WIDTH);
	if (slot.width > room) {
		let letters = 0;
		while (letters < slot.ends.length && slot.ends[letters] + atlas.ellipsis <= room)
			letters++;
		if (letters < 2)
			return;
		width = Math.min(Math.round(prefixWidth(slot, letters) * ratio) / ratio, SLOT_WIDTH);
		context.fillText('…', left + width, y + SLOT_HEIGHT / 2 + 0.5);
	} else if (slot.width > SLOT_WIDTH) {
		context.fillText(shorten(functionName(f), 200), a + 4, y + SLOT_HEIGHT / 2 + 0.5);
		return;
	}
	context.drawImage(atlas.canvas, slot.x * ratio, slot.y * ratio, width * ratio, SLOT_HEIGHT * ratio, left, Math.round(y * ratio) / ratio, width,
		SLOT_HEIGHT);
}

function drawLabels(context, labels) {
	if (atlas.ratio !== (window.devicePixelRatio || 1))
		clearAtlas();
	const drawing = ++atlas.drawing;
	const slots = labels.map(({f}) => labelSlot(f, drawing));
	context.fillStyle = palette.text;
	labels.forEach((label, i) => {
		if (slots[i])
			copyLabel(context, label, slots[i]);
	});
}

/* Draws the rows of a thread that are on the screen. */
function drawThread(context, track, top, labels) {
	const height = rowHeight(track);
	const y0 = track.y + NAME_ROW - top;
	const first = Math.max(0, Math.floor(-y0 / height));
	const last = Math.min(track.open ? track.depth : Math.min(track.depth, 6), Math.ceil((view.height - y0) / height));
	const width = canvases.calls.element.width;
	const list = readySegments(track.thread, levelFor(pixelNs() / view.ratio), view.from, view.to, draw);
	if (last <= first)
		return;
	prepareLines(width, last - first);
	const scale = width / (view.to - view.from);
	for (let depth = first; depth < last; depth++) {
		labels.y = y0 + depth * height;
		for (const segment of list)
			addRow(segment, depth, scale, width, height >= ROW ? labels : null);
		finishLine(width);
	}
	lines.context.putImageData(lines.image, 0, 0, 0, 0, width, last - first);
	context.imageSmoothingEnabled = false;
	for (let depth = first; depth < last; depth++)
		context.drawImage(lines.canvas, 0, depth - first, width, 1, 0, y0 + depth * height, view.width, height - (height > 6 ? 1 : 0));
}

const INSTANT_LOOKS = {10: ['bad', 5], 16: ['bad', 12], 26: ['accent', 12]};

/* Exceptions, marks, losses and the rest, as strokes in the line with the thread's name. */
function drawInstants(context, track, top) {
	const list = instants[track.thread];
	const y = track.y - top;
	let low = 0;
	for (let high = list.length; low < high;) {
		const middle = (low + high) >> 1;
		if (list[middle].time < view.from)
			low = middle + 1;
		else
			high = middle;
	}
	let before = -1;
	let labelled = -1;
	for (let i = low; i < list.length && list[i].time <= view.to; i++) {
		const x = Math.round(xOf(list[i].time));
		const [colour, height] = INSTANT_LOOKS[list[i].kind] || ['faint', 9];
		if (x === before && list[i].kind === 10)
			continue;
		before = x;
		context.fillStyle = palette[colour];
		context.fillRect(x, y + NAME_ROW - 2 - height, 1.5, height);
		if (list[i].kind !== 10 && x > labelled) {
			const text = shorten(instantText(list[i]), 40);
			const wide = context.measureText(text).width;
			const left = x + 6 + wide > view.width; /* no room at the right end */
			context.fillText(text, left ? x - 4 - wide : x + 4, y + 10);
			labelled = x + 12 + wide;
		}
	}
}

function instantText(instant) {
	switch (instant.kind) {
	case 10:
		return `exception ${textAt(instant.value)}`;
	case 16:
		return instant.value ? `${count(instant.value)} events lost` : 'events lost';
	case 22:
		return instant.value ? `fork of ${instant.value}` : 'fork failed';
	case 25:
		return instant.value & 256 ? `exit ${instant.value & 255}` : 'exit';
	case 26:
		return textAt(instant.value);
	case 27:
		return instant.value ? 'recording stops' : 'recording starts';
	default:
		return INSTANTS[instant.kind] || '';
	}
}

/* The first step of a task that ends at a time or later. */
function stepAt(steps, time) {
	let low = 0;
	for (let high = steps.length; low < high;) {
		const middle = (low + high) >> 1;
		if (steps[middle].end < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

function drawTask(context, track, y) {
	context.fillStyle = palette.accent;
	for (let i = stepAt(track.steps, view.from), before = -1; i < track.steps.length && track.steps[i].start <= view.to; i++) {
		const x = Math.max(xOf(track.steps[i].start), -1, before);
		const end = Math.max(xOf(track.steps[i].end), x + 1);
		before = Math.floor(end);
		context.fillRect(x, y + 2, Math.min(end, view.width + 1) - x, NAME_ROW - 5);
	}
}

function drawHeap(context, track, top) {
	const {heap} = track;
	if (!heap.time.length)
		return;
	const bottom = track.y - top + track.height - 3;
	const tall = track.height - 10;
	const yOf = (value) => bottom - (tall * value) / (heap.peak || 1);
	const first = Math.max(lowerBound(heap.time, 0, heap.time.length, view.from) - 1, 0);
	context.beginPath();
	context.moveTo(Math.max(xOf(heap.time[first]), -10), bottom);
	let y = yOf(heap.last[first]);
	for (let i = first; i < heap.time.length && heap.time[i] <= view.to; i++) {
		const x = Math.min(Math.max(xOf(heap.time[i]), -10), view.width + 10);
		if (i > first)
			context.lineTo(x, y); /* the value holds until it changes */
		context.lineTo(x, yOf(heap.high[i]));
		y = yOf(heap.last[i]);
		context.lineTo(Math.min(xOf(heap.time[i] + heap.width), view.width + 10), y);
	}
	context.lineTo(Math.min(xOf(meta.to), view.width + 10), y);
	context.lineTo(Math.min(xOf(meta.to), view.width + 10), bottom);
	context.globalAlpha = 0.3;
	context.fillStyle = palette.curve;
	context.fill();
	context.globalAlpha = 1;
	context.strokeStyle = palette.curve;
	context.lineWidth = 1;
	context.stroke();
	drawHeapMoments(context, heap, track.y - top, track.height);
}

/* When most was alive, and when the program had run. */
function drawHeapMoments(context, heap, y, height) {
	const moments = [[heap.peakTime, `peak ${bytesText(heap.peak)}`, 'peak'], [heap.end, 'end of the program', 'live']];
	context.lineWidth = 1;
	for (const [time, text, key] of moments) {
		const x = time === null || !heap.peak ? -1 : Math.round(xOf(time)) + 0.5;
		if (x < 0 || x > view.width)
			continue;
		const strong = weight.key === key;
		context.strokeStyle = palette[strong ? 'accent' : 'faint'];
		context.setLineDash(strong ? [] : [2, 3]);
		context.beginPath();
		context.moveTo(x, y + 1);
		context.lineTo(x, y + height - 3);
		context.stroke();
		context.setLineDash([]);
		if (height < HIGH_HEAP_ROW)
			continue;
		const wide = context.measureText(text).width;
		const left = x + 8 + wide > view.width;
		const at = left ? x - 5 - wide : x + 5;
		/* The one text below the other: the two moments may be the same. */
		const row = y + (key === 'peak' ? 11 : 28);
		context.globalAlpha = 0.8;
		context.fillStyle = palette.back;
		context.fillRect(at - 2, row - 8, wide + 4, 15);
		context.globalAlpha = 1;
		context.fillStyle = palette[strong ? 'accent' : 'faint'];
		context.fillText(text, at, row);
	}
}

function drawTracks() {
	const canvas = canvases.calls;
	const {context} = canvas;
	const box = byId('tracks');
	view.height = box.clientHeight;
	for (const line of ['overview_line', 'ruler_line'])
		byId(line).style.paddingRight = `${box.offsetWidth - box.clientWidth}px`;
	view.width = Math.max(canvas.element.clientWidth, 1);
	byId('window').style.height = `${view.height}px`;
	if (!fit(canvas, view.width, view.height))
		return;
	view.ratio = canvas.element.width / view.width;
	const top = box.scrollTop;
	const shown = visibleTracks();
	drawNames(shown);
	drawGrid(context);
	const labels = [];
	for (const track of shown) {
		const y = track.y - top;
		if (track.kind === 'process') {
			context.fillStyle = palette.raised;
			context.fillRect(0, y, view.width, PROCESS_ROW - 1);
			context.fillStyle = palette.line;
			context.fillRect(0, y + PROCESS_ROW - 1, view.width, 1);
			context.fillStyle = palette.faint;
			context.fillText(meta.processes[track.process].arguments.map((i) => textAt(i)).join(' ').slice(0, 300), 6, y + 13);
		} else if (track.kind === 'heap') {
			drawHeap(context, track, top);
		} else if (track.kind === 'task') {
			drawTask(context, track, track.y - top);
		} else {
			drawThread(context, track, top, labels);
			drawInstants(context, track, top);
		}
	}
	drawLabels(context, labels);
	drawStretch(context, view.height);
	drawMarked(context, top);
}

function drawGrid(context) {
	const step = Math.max(rulerStep(90), 1);
	context.strokeStyle = palette.line;
	context.globalAlpha = 0.5;
	context.lineWidth = 1;
	context.beginPath();
	for (let k = Math.ceil(view.from / step); k * step <= view.to; k++) {
		const x = Math.round(xOf(k * step)) + 0.5;
		context.moveTo(x, 0);
		context.lineTo(x, view.height);
	}
	context.stroke();
	context.globalAlpha = 1;
}

/* A frame around the call that is selected. */
function drawMarked(context, top) {
	const {call} = selection;
	const track = call && tracks.find((one) => one.thread === call.thread);
	if (!track)
		return;
	const height = rowHeight(track);
	const y = track.y + NAME_ROW + call.depth * height - top;
	const a = Math.max(xOf(call.start), -4);
	const b = Math.min(xOf(call.end), view.width + 4);
	context.strokeStyle = palette.accent;
	context.lineWidth = 2;
	context.strokeRect(a - 1, y - 1, Math.max(b - a, 1) + 1, height + 1);
}

/* --- what is at a place --- */

function trackAt(y) {
	return visibleTracks().find((track) => y >= track.y && y < track.y + track.height);
}

/* The longest call at a depth that touches the stretch; slivers only where there is no call. */
function callAt(thread, depth, from, to, pixel = pixelNs() / view.ratio) {
	let best = null;
	for (const segment of readySegments(thread, levelFor(pixel), from, to, draw)) {
		const {rows} = segment;
		if (depth >= rows.depths)
			continue;
		for (let i = lowerBound(rows.end, rows.first[depth], rows.first[depth + 1], from); i < rows.first[depth + 1] && rows.start[i] <= to; i++) {
			const found = {thread, depth, start: rows.start[i], end: rows.end[i], fn: rows.fn[i], how: segment.sliver ? -1 : rows.how[i],
				calls: segment.sliver ? rows.calls[i] : 1, cover: segment.sliver ? rows.cover[i] / 255 : 1};
			const better = !best || (found.how >= 0) > (best.how >= 0) || ((found.how >= 0) === (best.how >= 0) && found.end - found.start > best.end - best.start);
			if (better)
				best = found;
		}
	}
	return best;
}

/* What is under the pointer: a call, an instant, a point of the heap, or nothing. */
function hit(x, y) {
	const top = byId('tracks').scrollTop;
	const track = trackAt(y + top);
	if (!track)
		return null;
	const time = timeAt(x);
	if (track.kind === 'heap') {
		const at = lowerBound(track.heap.time, 0, track.heap.time.length, time + 1e-9) - 1;
		return at < 0 ? null : {heap: track.heap, at, time};
	}
	if (track.kind === 'task') {
		const step = track.steps[stepAt(track.steps, timeAt(x - 1))];
		return step && step.start <= timeAt(x + 1) ? {task: track, step} : null;
	}
	if (track.kind !== 'thread')
		return null;
	const row = Math.floor((y + top - track.y - NAME_ROW) / rowHeight(track));
	if (row < 0) {
		let near = null;
		for (const instant of instants[track.thread])
			if (Math.abs(xOf(instant.time) - x) < 4 && (!near || Math.abs(instant.time - time) < Math.abs(near.time - time)))
				near = instant;
		return near && {instant: near};
	}
	if (row >= track.depth)
		return null;
	const call = callAt(track.thread, row, timeAt(x - 0.5), timeAt(x + 0.5));
	return call && {call};
}

function callText(call) {
	if (call.how < 0)
		return [`${plural(call.calls, 'short call', 'short calls')}`, `the longest is ${functionName(call.fn)}; zoom in to see them`];
	return [functionName(call.fn), `${duration(call.end - call.start)} · ${KINDS[call.how >> 3]}, ${ENDS[call.how & 7]}`, functionPlace(call.fn)];
}

function hitText(found) {
	if (found.call)
		return callText(found.call);
	if (found.instant)
		return [instantText(found.instant), `at ${moment(found.instant.time)}`];
	if (found.task)
		return [found.task.name, `a step of ${duration(found.step.end - found.step.start)}`, `at ${moment(found.step.start)}`];
	const {heap, at} = found;
	return [`${bytesText(heap.last[at])} in Python's blocks`, `at ${moment(found.time)}`,
		heap.width > 1 ? `${bytesText(heap.low[at])} to ${bytesText(heap.high[at])} within ${duration(heap.width)}` : ''];
}

function showTip(event, lines_) {
	const tip = byId('tip');
	if (!lines_) {
		tip.hidden = true;
		return;
	}
	tip.replaceChildren(element('b', {}, shorten(lines_[0], 300)), ...lines_.slice(1).filter(Boolean).map((line) => element('div', {}, shorten(line, 300))));
	tip.hidden = false;
	const box = tip.getBoundingClientRect();
	tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 6))}px`;
	tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18}px`;
}

/* --- selecting --- */

function selectCall(call) {
	selection.call = call;
	selection.fn = call ? call.fn : -1;
	showDetails();
	draw();
	drawFlame();
	markRow();
}

function showCall(call) {
	const span = Math.max((call.end - call.start) * 1.6, 1000);
	const middle = (call.start + call.end) / 2;
	setView(middle - span / 2, middle + span / 2);
	revealCall(call);
}

function revealCall(call) {
	const track = tracks.find((one) => one.thread === call.thread);
	if (!track.open) {
		track.open = true;
		placeTracks();
	}
	const y = track.y + NAME_ROW + call.depth * rowHeight(track);
	const box = byId('tracks');
	if (y < box.scrollTop || y + ROW > box.scrollTop + box.clientHeight)
		box.scrollTop = Math.max(0, y - box.clientHeight / 3);
}

/* Goes to the longest call of a function, wherever it is. */
async function showLongest(fn) {
	if (!functions.longest[fn])
		return;
	const took = functions.longest[fn] - 1;
	const call = {thread: functions.longestThread[fn], start: functions.longestStart[fn], end: functions.longestStart[fn] + took, fn};
	setView(call.start - took * 0.3 - 300, call.end + took * 0.3 + 300);
	const needed = neededSegments(call.thread, levelFor(pixelNs() / view.ratio), view.from, view.to).filter((segment) => !segment.rows);
	await Promise.all(needed.map((segment) => loadBlock(segment.block)));
	for (let depth = 0; depth < meta.threads[call.thread].depth; depth++) {
		const found = callAt(call.thread, depth, call.start + took / 2, call.start + took / 2);
		if (found && found.fn === fn && found.start === call.start && found.end === call.end) {
			revealCall(found);
			selectCall(found);
			return;
		}
	}
	selection.fn = fn;
	showDetails();
}

/* The next call in the same row, in one direction. */
function stepSideways(direction) {
	const {call} = selection;
	const span = view.to - view.from;
	let next = null;
	for (const segment of readySegments(call.thread, levelFor(pixelNs() / view.ratio), call.start - span, call.end + span, draw)) {
		const {rows} = segment;
		if (segment.sliver || call.depth >= rows.depths)
			continue;
		const [low, high] = [rows.first[call.depth], rows.first[call.depth + 1]];
		let i = lowerBound(rows.start, low, high, direction > 0 ? call.start + 0.5 : call.start);
		i += direction > 0 ? 0 : -1;
		if (i >= low && i < high && (!next || (rows.start[i] - next.start) * direction < 0))
			next = {...call, start: rows.start[i], end: rows.end[i], fn: rows.fn[i], how: rows.how[i]};
	}
	return next;
}

function stepCall(key) {
	const {call} = selection;
	let next = null;
	if (!call) {
		const track = visibleTracks().find((one) => one.depth && one.open);
		next = track && callAt(track.thread, 0, view.from, view.to);
	} else if (key === 'ArrowUp') {
		next = call.depth ? callAt(call.thread, call.depth - 1, call.start, call.end) : null;
	} else if (key === 'ArrowDown') {
		next = callAt(call.thread, call.depth + 1, call.start, call.end);
	} else {
		next = stepSideways(key === 'ArrowRight' ? 1 : -1);
	}
	if (!next || next.how < 0)
		return;
	if (next.end < view.from || next.start > view.to) {
		const span = view.to - view.from;
		setView((next.start + next.end - span) / 2, (next.start + next.end + span) / 2);
	}
	revealCall(next);
	selectCall(next);
}

/* --- pointer --- */

function listenTracks() {
	const target = canvases.calls.element;
	const box = byId('tracks');
	let drag = null;
	target.addEventListener('wheel', (event) => {
		const unit = event.deltaMode === 1 ? 20 : event.deltaMode === 2 ? 400 : 1;
		event.preventDefault();
		showTip(event, null);
		if (event.shiftKey) {
			box.scrollTop += (event.deltaY || event.deltaX) * unit;
			return;
		}
		if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
			const by = event.deltaX * unit * pixelNs();
			setView(view.from + by, view.to + by);
			return;
		}
		zoomAt(Math.exp(Math.min(Math.max(event.deltaY * unit, -200), 200) * (event.ctrlKey ? 0.01 : 0.0022)), event.offsetX);
	}, {passive: false});
	target.addEventListener('pointerdown', (event) => {
		if (event.button > 1)
			return;
		target.setPointerCapture(event.pointerId);
		drag = {x: event.offsetX, y: event.offsetY, from: view.from, to: view.to, top: box.scrollTop, moved: false, stretch: event.shiftKey};
	});
	target.addEventListener('pointermove', (event) => {
		if (!drag) {
			const found = hit(event.offsetX, event.offsetY);
			showTip(event, found && hitText(found));
			return;
		}
		drag.moved ||= Math.abs(event.offsetX - drag.x) + Math.abs(event.offsetY - drag.y) > 4;
		if (!drag.moved)
			return;
		showTip(event, null);
		if (drag.stretch) {
			dragStretch(drag.x, event.offsetX);
			return;
		}
		const by = ((drag.x - event.offsetX) * (drag.to - drag.from)) / view.width;
		box.scrollTop = drag.top + drag.y - event.offsetY;
		target.style.cursor = 'grabbing';
		setView(drag.from + by, drag.to + by);
	});
	const drop = (event) => {
		if (drag && !drag.moved && event.type === 'pointerup') {
			const found = hit(event.offsetX, event.offsetY);
			selectCall(found && found.call ? found.call : null);
		}
		if (drag && drag.stretch && drag.moved)
			stretchChosen();
		drag = null;
		target.style.cursor = '';
	};
	target.addEventListener('pointerup', drop);
	target.addEventListener('pointercancel', drop);
	target.addEventListener('pointerleave', (event) => showTip(event, null));
	target.addEventListener('dblclick', (event) => {
		const found = hit(event.offsetX, event.offsetY);
		if (found && found.call)
			showCall(found.call);
	});
	box.addEventListener('scroll', draw);
}

function dragStretch(x0, x1) {
	const [a, b] = [timeAt(Math.min(x0, x1)), timeAt(Math.max(x0, x1))];
	selection.stretch = {from: Math.max(Math.round(a), meta.from), to: Math.min(Math.round(b), meta.to)};
	draw();
}

function listenRuler() {
	const target = canvases.ruler.element;
	let start = null;
	target.addEventListener('pointerdown', (event) => {
		target.setPointerCapture(event.pointerId);
		start = event.offsetX;
	});
	target.addEventListener('pointermove', (event) => {
		if (start !== null && Math.abs(event.offsetX - start) > 2)
			dragStretch(start, event.offsetX);
	});
	target.addEventListener('pointerup', (event) => {
		if (start !== null && Math.abs(event.offsetX - start) > 2)
			stretchChosen();
		else
			clearStretch();
		start = null;
	});
	const overview = canvases.overview.element;
	const move = (event) => {
		if (!event.buttons)
			return;
		const at = meta.from + (event.offsetX / overview.clientWidth) * SPAN;
		const span = Math.min(view.to - view.from, SPAN);
		setView(at - span / 2, at + span / 2);
	};
	overview.addEventListener('pointerdown', (event) => {
		overview.setPointerCapture(event.pointerId);
		move(event);
	});
	overview.addEventListener('pointermove', move);
}

/* --- keys --- */

const pressed = new Set();
let moving = 0;

function moveWhilePressed(now) {
	const passed = Math.min(now - moving, 50);
	moving = now;
	const by = pixelNs() * view.width * passed * 0.0011 * ((pressed.has('d') ? 1 : 0) - (pressed.has('a') ? 1 : 0));
	const zoom = (pressed.has('s') ? 1 : 0) - (pressed.has('w') ? 1 : 0);
	if (by)
		setView(view.from + by, view.to + by);
	if (zoom)
		zoomAt(Math.exp(zoom * passed * 0.004), view.width / 2);
	if (pressed.size)
		requestAnimationFrame(moveWhilePressed);
}

function giveUp() {
	if (byId('query').value) {
		byId('query').value = '';
		search();
	} else if (selection.call || selection.fn >= 0) {
		selectCall(null);
	} else if (selection.stretch) {
		clearStretch();
	}
}

function zoomToSelection() {
	if (selection.call)
		showCall(selection.call);
	else if (selection.stretch)
		setView(selection.stretch.from, selection.stretch.to);
}

const KEYS = {
	'0': wholeView,
	f: zoomToSelection,
	c: () => {
		view.low = !view.low;
		placeTracks();
	},
	m: nextWeight,
	'/': () => byId('query').focus(),
	'?': () => byId('help').showModal(),
	Escape: giveUp,
};

function listenKeys() {
	addEventListener('keydown', (event) => {
		if (event.ctrlKey || event.metaKey || event.altKey || byId('help').open)
			return;
		if (event.target.tagName === 'INPUT') {
			if (event.key === 'Escape')
				giveUp();
			return;
		}
		if (event.target.tagName === 'SELECT' && event.key !== 'Escape')
			return; /* letters choose there */
		const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
		if ('wasd'.includes(key)) {
			if (!pressed.size) {
				moving = performance.now() - 16;
				requestAnimationFrame(moveWhilePressed);
			}
			pressed.add(key);
		} else if (KEYS[key] && !(key === 'Escape' && event.target === canvases.flame.element)) {
			KEYS[key]();
			event.preventDefault();
		} else if (key.startsWith('Arrow') && (event.target === canvases.calls.element || event.target === document.body)) {
			stepCall(key);
			event.preventDefault();
		}
	});
	addEventListener('keyup', (event) => pressed.delete(event.key.length === 1 ? event.key.toLowerCase() : event.key));
	addEventListener('blur', () => pressed.clear());
}

/* ---- weights: what flame graph and table show --------------------------------------------------------------------- */

/* memory: the columns of what the page has of it (made, at the end, at the peak), and whether blocks are counted or bytes. */
const WEIGHTS = {
	time: {key: 'time', title: 'Time', text: duration, of: 'of the time', none: 'no calls', own: 'own'},
	bytes: {key: 'bytes', title: 'Bytes allocated', text: bytesText, of: 'of the bytes', none: 'nothing was allocated', own: 'ownBytes',
		memory: {when: 0, unit: 'bytes', blocks: ['allocation', 'allocations']}},
	allocations: {key: 'allocations', title: 'Allocations', text: (value) => plural(value, 'allocation', 'allocations'), of: 'of the allocations',
		none: 'nothing was allocated', own: 'ownBlocks', memory: {when: 0, unit: 'blocks', blocks: ['allocation', 'allocations']}},
	live: {key: 'live', title: 'Live at the end', text: bytesText, of: 'of the bytes', none: 'nothing was alive', own: 'ownBytes',
		memory: {when: 1, unit: 'bytes', blocks: ['block', 'blocks']}},
	peak: {key: 'peak', title: 'Live at the peak', text: bytesText, of: 'of the bytes', none: 'nothing was alive', own: 'ownBytes',
		memory: {when: 2, unit: 'bytes', blocks: ['block', 'blocks']}},
};

/* The whole run as evprof counted it; that or a stretch as counted here; and that or a weight of memory, which is of the whole. */
let whole = null;
let timed = null;
let shown = null;

/* By moment: own and total blocks and bytes of the functions; null: the trace has no memory events. */
let memory = null;

const amount = (value) => weight.text(value);

async function loadMemory() {
	if (!meta.memory)
		return;
	const [fn, ...columns] = (await unpack(meta.memory + 1)).map(numbers);
	const byFunction = (column) => {
		const values = new Float64Array(functions.count);
		for (let i = 0; i < fn.length; i++)
			values[fn[i]] = column[i];
		return values;
	};
	memory = [0, 1, 2].map((when) => {
		const [ownBlocks, ownBytes] = columns.slice(2 * when, 2 * when + 2).map(byFunction);
		const [totalBlocks, totalBytes] = columns.slice(6 + 2 * when, 8 + 2 * when).map(byFunction);
		return {ownBlocks, ownBytes, totalBlocks, totalBytes};
	});
	memory.weighed = new Map();
	memory.columns = null;
}

/* Parents, functions and processes of the nodes of a tree; 0 is above them all. */
function unpackTree(distance, fn) {
	const tree = {parent: [0], fn: [0], process: [-1]};
	for (let i = 0; i < distance.length; i++) {
		tree.parent.push(distance[i] ? i + 1 - distance[i] : 0);
		tree.fn.push(fn[i]);
		tree.process.push(distance[i] ? tree.process[i + 1 - distance[i]] : fn[i]);
	}
	return tree;
}

/* What is shown with a weight of memory. */
async function weigh(chosen) {
	const {when, unit} = chosen.memory;
	if (memory.weighed.has(chosen.key))
		return memory.weighed.get(chosen.key);
	memory.columns ||= (await unpack(meta.memory)).map(numbers);
	const [distance, fn, ...columns] = memory.columns;
	memory.tree ||= unpackTree(distance, fn);
	const [blocks, bytes] = columns.slice(2 * when, 2 * when + 2).map((column) => [0, ...column]);
	const tree = finishTree({...memory.tree, calls: blocks, bytes, total: (unit === 'bytes' ? bytes : blocks).slice()});
	const sums = memory[when];
	const result = {tree, ...sums, least: meta.memory_least ? `${((100 * meta.memory_least) / 2 ** 32).toPrecision(2)} %` : '',
		own: unit === 'bytes' ? sums.ownBytes : sums.ownBlocks, total: unit === 'bytes' ? sums.totalBytes : sums.totalBlocks};
	memory.weighed.set(chosen.key, result);
	return result;
}

const isListed = (f) => (weight.memory ? shown.totalBlocks[f] > 0 : shown.calls[f] || shown.own[f] || shown.total[f]);

/* The node of another tree with the same stack, or the innermost one that has anything. */
function sameNode(from, node, to) {
	const path = [];
	for (; node; node = from.parent[node])
		path.unshift(from.parent[node] ? from.fn[node] : from.process[node]);
	let at = 0;
	for (const step of path) {
		const children = to.order.subarray(to.first[at], to.first[at + 1]);
		const next = children.find((child) => (at ? to.fn[child] : to.process[child]) === step && to.total[child] > 0);
		if (next === undefined)
			break;
		at = next;
	}
	return at;
}

/* Shows another result in flame graph, table and details. */
function show(result, root = 0) {
	shown = result;
	flame.root = root === topNode() ? 0 : root;
	flame.focus = flame.root;
	layoutFlame();
	fillTable();
	showDetails();
	tellFound();
	tellScope();
}

let weighing = 0;

async function chooseWeight(key) {
	const turn = ++weighing;
	const result = key === 'time' ? timed : await weigh(WEIGHTS[key]);
	if (turn !== weighing)
		return;
	const before = shown;
	weight = WEIGHTS[key];
	byId('weight').value = key;
	if (table.key !== 'name') {
		table.key = weight.own;
		table.down = true;
	}
	makeColumns();
	show(result, sameNode(before.tree, flame.root, result.tree));
	placeTracks();
}

function nextWeight() {
	const keys = Object.keys(WEIGHTS);
	if (memory)
		chooseWeight(keys[(keys.indexOf(byId('weight').value) + 1) % keys.length]);
}

function listenWeight() {
	byId('weight_choice').hidden = !memory;
	byId('weight').replaceChildren(...Object.values(WEIGHTS).map(({key, title}) => element('option', {value: key}, title)));
	byId('weight').addEventListener('change', (event) => chooseWeight(event.target.value));
}

/* Children of each node one after the other, the longest first: order[first[n]] to order[first[n + 1]]. */
function finishTree(tree) {
	const size = tree.parent.length;
	const first = new Uint32Array(size + 1);
	for (let i = 1; i < size; i++)
		first[tree.parent[i] + 1]++;
	for (let i = 0; i < size; i++)
		first[i + 1] += first[i];
	const next = first.slice();
	const order = new Uint32Array(size);
	const inner = new Float64Array(size);
	for (let i = 1; i < size; i++) {
		order[next[tree.parent[i]]++] = i;
		if (tree.parent[i] === 0)
			tree.total[0] += tree.total[i];
		inner[tree.parent[i]] += tree.total[i];
	}
	for (let i = 0; i < size; i++)
		if (first[i + 1] - first[i] > 1)
			order.subarray(first[i], first[i + 1]).sort((a, b) => tree.total[b] - tree.total[a]);
	const depth = new Uint32Array(size);
	for (let i = 1; i < size; i++)
		depth[i] = depth[tree.parent[i]] + 1;
	return Object.assign(tree, {size, first, order, inner, depth});
}

async function loadTree() {
	const [distance, fn, calls, total] = (await unpack(meta.tree)).map(numbers);
	const tree = finishTree({...unpackTree(distance, fn), calls: [0, ...calls], total: [0, ...total]});
	weight = WEIGHTS.time;
	whole = {calls: functions.calls, recursive: functions.recursive, own: functions.own, total: functions.total, tree,
		least: meta.stacks_least ? duration(meta.stacks_least) : ''};
	timed = whole;
	shown = whole;
}

let counting = 0;

/* Of which moment, or of which part of the run, memory is told. */
function memoryScope() {
	const {key} = weight;
	const [heap] = heaps;
	const whose = selection.stretch ? 'all of it: memory is not counted by stretch' : 'all of it';
	if (key === 'peak')
		return heaps.length === 1 ? `at the peak, at ${moment(heap.peakTime)}` : 'each process at its own peak';
	if (key === 'live' && heaps.length > 1)
		return 'each process at its own end';
	if (key === 'live')
		return heap.end === null ? `at the end, at ${moment(meta.to)}` : `as the program ended, at ${moment(heap.end)}`;
	return whose;
}

function tellScope(text) {
	const {stretch} = selection;
	byId('scope').textContent = weight.memory ? memoryScope()
		: text || (stretch ? `${duration(stretch.to - stretch.from)} from ${moment(stretch.from)}` : 'all of it');
	byId('scope_zoom').hidden = !stretch;
	byId('scope_clear').hidden = !stretch;
}

function showTimed(result) {
	timed = result;
	if (weight.memory)
		showDetails();
	else
		show(result);
}

/* The stretch is set: counts it, and shows what comes out. */
async function stretchChosen() {
	const {stretch} = selection;
	const turn = ++counting;
	if (!stretch || stretch.to <= stretch.from) {
		clearStretch();
		return;
	}
	tellScope('counting…');
	const began = performance.now();
	const progress = {done: 0, tell: () => {
		if (performance.now() - began > 400)
			tellScope(`counting… ${count(progress.done)} calls`);
	}};
	const result = await aggregate(stretch.from, stretch.to, () => turn !== counting, progress);
	if (!result)
		return;
	finishTree(result.tree);
	showTimed(Object.assign(result, {least: ''}));
	tellScope(meta.shortest ? `${duration(stretch.to - stretch.from)} from ${moment(stretch.from)}, without calls below ${duration(meta.shortest)}` : '');
}

function clearStretch() {
	counting++;
	selection.stretch = null;
	if (timed !== whole)
		showTimed(whole);
	tellScope();
	draw();
}

/* ---- flame graph ------------------------------------------------------------------------------------------------- */

const FLAME_ROW = 19;
const flame = {root: 0, focus: 0, boxes: [], hover: 0};

function nodeName(node) {
	const {tree} = shown;
	if (!node)
		return 'all processes';
	return tree.parent[node] ? functionName(tree.fn[node]) : processName(tree.process[node]);
}

/* One process needs no root of its own above it. */
function topNode() {
	const {tree} = shown;
	return tree.first[1] - tree.first[0] === 1 ? tree.order[tree.first[0]] : 0;
}

function layoutFlame() {
	const {tree} = shown;
	const base = tree.depth[flame.root || topNode()];
	let deepest = base;
	const stack = [flame.root || topNode()];
	while (stack.length) {
		const node = stack.pop();
		deepest = Math.max(deepest, tree.depth[node]);
		for (let k = tree.first[node]; k < tree.first[node + 1] && tree.total[tree.order[k]] > 0; k++)
			stack.push(tree.order[k]);
	}
	byId('flame_height').style.height = `${(deepest - base + 1) * FLAME_ROW + 6}px`;
	drawCrumbs();
	drawFlame();
}

function drawCrumbs() {
	const {tree} = shown;
	const path = [];
	for (let node = flame.root || topNode(); ; node = tree.parent[node]) {
		path.unshift(node);
		if (!node || node === topNode())
			break;
	}
	const total = tree.total[topNode()] || 1;
	const short = path.length > 6 ? [path[0], -1, ...path.slice(-4)] : path;
	byId('crumbs').replaceChildren(...short.flatMap((node, i) => {
		const arrow = i ? [' › '] : [];
		if (node < 0)
			return [...arrow, '…'];
		return [...arrow, element('button', {type: 'button', onclick: () => zoomFlame(node)}, shorten(nodeName(node), 60))];
	}), ` · ${amount(tree.total[flame.root || topNode()])}, ${((100 * tree.total[flame.root || topNode()]) / total).toFixed(1)} %${shown.least ? ` · stacks below ${shown.least} are left out` : ''}`);
}

function zoomFlame(node) {
	flame.root = node === topNode() ? 0 : node;
	flame.focus = node;
	byId('flame_box').scrollTop = 0;
	layoutFlame();
}

function drawFlame() {
	if (!shown || byId('panel_flame').hidden)
		return;
	requestAnimationFrame(drawFlameNow);
}

function drawFlameNow() {
	const canvas = canvases.flame;
	const {context} = canvas;
	const box = byId('flame_box');
	const width = byId('flame_height').clientWidth;
	const height = box.clientHeight;
	if (!fit(canvas, width, height))
		return;
	const {tree} = shown;
	const root = flame.root || topNode();
	const total = tree.total[root];
	flame.boxes = [];
	if (!total) {
		context.fillStyle = palette.faint;
		context.fillText(weight.none, 10, 16);
		return;
	}
	const scale = width / total;
	const stack = [[root, 0, -box.scrollTop]];
	const labels = [];
	while (stack.length) {
		const [node, x, y] = stack.pop();
		const wide = tree.total[node] * scale;
		if (y > -FLAME_ROW)
			drawFlameBox(context, node, x, y, wide, labels);
		let at = x;
		for (let k = tree.first[node]; k < tree.first[node + 1] && y + FLAME_ROW < height; k++) {
			const child = tree.order[k];
			if (tree.total[child] * scale < 0.4)
				break; /* they come in order of size */
			stack.push([child, at, y + FLAME_ROW]);
			at += tree.total[child] * scale;
		}
	}
	drawLabels(context, labels);
}

function drawFlameBox(context, node, x, y, wide, labels) {
	const {tree} = shown;
	const fn = tree.parent[node] ? tree.fn[node] : -1;
	flame.boxes.push([x, y, wide, node]);
	context.fillStyle = fn < 0 ? palette.bar : cssColour(functionWord(fn));
	context.fillRect(x, y, Math.max(wide - (wide > 3 ? 1 : 0), 0.5), FLAME_ROW - 1);
	if (node === flame.focus || (fn >= 0 && fn === selection.fn && wide > 2)) {
		context.strokeStyle = palette.accent;
		context.lineWidth = 2;
		context.strokeRect(x + 1, y + 1, Math.max(wide - 3, 1), FLAME_ROW - 3);
	}
	if (wide < 26)
		return;
	context.fillStyle = palette.text;
	if (fn >= 0) {
		labels.push({a: x, b: x + wide - 1, f: fn, y});
		return;
	}
	context.fillText(cutText(context, `${nodeName(node)} · ${amount(tree.total[node])}`, wide - 9), x + 4, y + FLAME_ROW / 2);
}

function flameAt(x, y) {
	const found = flame.boxes.find(([a, b, wide]) => x >= a && x < a + Math.max(wide, 1) && y >= b && y < b + FLAME_ROW);
	return found ? found[3] : -1;
}

/* How many calls, or in how many blocks; where those are the weight, how many bytes. */
function nodeNumber(node) {
	const {tree} = shown;
	if (!node || (!weight.memory && !tree.parent[node]))
		return '';
	if (!weight.memory)
		return plural(tree.calls[node], ...seen);
	return weight.memory.unit === 'blocks' ? bytesText(tree.bytes[node]) : plural(tree.calls[node], ...weight.memory.blocks);
}

function nodeText(node) {
	const {tree} = shown;
	const share = `${((100 * tree.total[node]) / (tree.total[topNode()] || 1)).toFixed(2)} %`;
	return [nodeName(node), `${amount(tree.total[node])} (${share}), ${amount(tree.total[node] - tree.inner[node])} of it by itself`,
		nodeNumber(node), tree.parent[node] ? functionPlace(tree.fn[node]) : ''];
}

function focusNode(node) {
	const {tree} = shown;
	flame.focus = node;
	selection.call = null;
	selection.fn = tree.parent[node] ? tree.fn[node] : -1;
	showDetails(node);
	drawFlame();
	draw();
	markRow();
}

function stepFlame(key) {
	const {tree} = shown;
	const node = flame.focus || topNode();
	const parent = tree.parent[node];
	if (key === 'ArrowUp' && node !== (flame.root || topNode()))
		return parent;
	if (key === 'ArrowDown' && tree.first[node] < tree.first[node + 1] && tree.total[tree.order[tree.first[node]]] > 0)
		return tree.order[tree.first[node]];
	if (key !== 'ArrowLeft' && key !== 'ArrowRight')
		return node;
	const beside = tree.order.subarray(tree.first[parent], tree.first[parent + 1]);
	const at = beside.indexOf(node) + (key === 'ArrowRight' ? 1 : -1);
	return at >= 0 && at < beside.length && tree.total[beside[at]] > 0 && node !== topNode() ? beside[at] : node;
}

function listenFlame() {
	const target = canvases.flame.element;
	target.addEventListener('pointermove', (event) => {
		const node = flameAt(event.offsetX, event.offsetY);
		showTip(event, node >= 0 ? nodeText(node) : null);
	});
	target.addEventListener('pointerleave', (event) => showTip(event, null));
	target.addEventListener('click', (event) => {
		const node = flameAt(event.offsetX, event.offsetY);
		if (node < 0)
			return;
		if (node === (flame.root || topNode()) && flame.root)
			zoomFlame(shown.tree.parent[node]);
		else
			zoomFlame(node);
		focusNode(node);
	});
	target.addEventListener('keydown', (event) => {
		if (event.key.startsWith('Arrow')) {
			focusNode(stepFlame(event.key));
			event.preventDefault();
			event.stopPropagation();
		} else if (event.key === 'Enter') {
			zoomFlame(flame.focus || topNode());
		} else if (event.key === 'Escape') {
			zoomFlame(flame.root ? shown.tree.parent[flame.root] : 0);
		}
	});
	byId('flame_box').addEventListener('scroll', drawFlame);
}

/* ---- table ------------------------------------------------------------------------------------------------------- */

/* text() is what stands in a cell; bar: the value's share of all is drawn behind it. */
const seconds = (ns) => (ns / 1e9).toFixed(6);
const primitive = (f) => shown.calls[f] - shown.recursive[f];
const NAME_COLUMN = {key: 'name', title: 'function', hint: 'name and place'};
const TIME_COLUMNS = [
	{key: 'calls', title: 'ncalls', hint: `${seen[1]}, and those that are not recursive`, value: (f) => shown.calls[f],
		text: (calls, f) => (shown.recursive[f] ? `${count(calls)}/${count(primitive(f))}` : count(calls))},
	{key: 'own', title: 'tottime', hint: 'time in the function itself', value: (f) => shown.own[f], text: seconds, bar: true},
	{key: 'ownEach', title: 'percall', hint: 'tottime for each call', value: (f) => (shown.calls[f] ? shown.own[f] / shown.calls[f] : 0),
		text: (ns, f) => (shown.calls[f] ? duration(ns) : '')},
	{key: 'total', title: 'cumtime', hint: 'time in the function and what it called', value: (f) => shown.total[f], text: seconds, bar: true},
	{key: 'totalEach', title: 'percall', hint: 'cumtime for each call that is not recursive', value: (f) => (primitive(f) ? shown.total[f] / primitive(f) : 0),
		text: (ns, f) => (primitive(f) ? duration(ns) : '')},
	NAME_COLUMN,
];

/* The same for memory, of which a part may be given back again: nothing is said for each call. */
function memoryColumns({unit, blocks: [, many]}) {
	const exact = (bytes) => plural(bytes, 'byte', 'bytes');
	return [
		{key: 'ownBlocks', title: many, hint: `${many} of the function itself`, value: (f) => shown.ownBlocks[f], text: count, bar: unit === 'blocks'},
		{key: 'ownBytes', title: 'bytes', hint: `bytes in ${many} of the function itself`, value: (f) => shown.ownBytes[f], text: bytesText, exact,
			bar: unit === 'bytes'},
		{key: 'eachBytes', title: 'each', hint: 'bytes of one', value: (f) => (shown.ownBlocks[f] ? shown.ownBytes[f] / shown.ownBlocks[f] : 0),
			text: (bytes, f) => (shown.ownBlocks[f] ? bytesText(bytes) : '')},
		{key: 'totalBlocks', title: `total ${many}`, hint: `${many} of the function and what it called`, value: (f) => shown.totalBlocks[f], text: count,
			bar: unit === 'blocks'},
		{key: 'totalBytes', title: 'total bytes', hint: `bytes in ${many} of the function and what it called`, value: (f) => shown.totalBytes[f],
			text: bytesText, exact, bar: unit === 'bytes'},
		NAME_COLUMN,
	];
}

const STEP_ROWS = 200;
const table = {key: 'own', down: true, list: [], rows: 0, columns: []};

function makeColumns() {
	table.columns = weight.memory ? memoryColumns(weight.memory) : TIME_COLUMNS;
	byId('columns').replaceChildren(...table.columns.map((column) => element('th', {scope: 'col', 'data-key': column.key},
		element('button', {type: 'button', title: column.hint, onclick: () => {
			table.down = table.key === column.key ? !table.down : column.key !== 'name';
			table.key = column.key;
			fillTable();
		}}, column.title))));
}

function fillTable() {
	if (!shown || byId('panel_table').hidden)
		return;
	for (const head of byId('columns').children) {
		if (head.dataset.key === table.key)
			head.setAttribute('aria-sort', table.down ? 'descending' : 'ascending');
		else
			head.removeAttribute('aria-sort');
	}
	table.list = [];
	for (let f = 0; f < functions.count; f++)
		if (isListed(f) && (!functions.match || functions.match[f]))
			table.list.push(f);
	const way = table.down ? -1 : 1;
	if (table.key === 'name') {
		table.list.sort((a, b) => way * (functionName(a) < functionName(b) ? -1 : functionName(a) > functionName(b) ? 1 : a - b));
	} else {
		const {value} = table.columns.find((column) => column.key === table.key);
		const values = Float64Array.from({length: functions.count}, (_, f) => value(f));
		table.list.sort((a, b) => way * (values[a] - values[b]) || a - b);
	}
	table.rows = 0;
	byId('rows').replaceChildren();
	addRows();
}

function tableCell(column, f) {
	const value = column.value(f);
	const share = Math.min(100, (100 * value) / (shown.tree.total[0] || 1)).toFixed(2);
	return element('td', {...(column.bar ? {class: 'share', style: `--share:${share}%`} : {}), ...(column.exact ? {title: column.exact(value)} : {})},
		column.text(value, f));
}

function tableRow(f) {
	const place = [functionPlace(f), 'C', functionFile(f)][functions.native[f]];
	return element('tr', {'data-f': f}, ...table.columns.slice(0, -1).map((column) => tableCell(column, f)),
		element('td', {title: functionStandard(f)}, element('span', {class: 'swatch', style: `background:${cssColour(ownWord(f))}`}),
			shorten(functionName(f), 300), element('small', {}, shorten(place, 400))));
}

function addRows() {
	const until = Math.min(table.rows + STEP_ROWS, table.list.length);
	byId('rows').append(...table.list.slice(table.rows, until).map(tableRow));
	table.rows = until;
	byId('more').hidden = until === table.list.length;
	byId('more').textContent = `${count(table.list.length - until)} more functions`;
	markRow();
}

function markRow() {
	for (const row of byId('rows').children)
		row.classList.toggle('chosen', Number(row.dataset.f) === selection.fn);
}

function listenTable() {
	byId('rows').addEventListener('click', (event) => {
		const row = event.target.closest('tr');
		if (!row)
			return;
		selection.call = null;
		selection.fn = Number(row.dataset.f);
		showDetails();
		markRow();
		draw();
	});
	byId('rows').addEventListener('dblclick', (event) => {
		const row = event.target.closest('tr');
		if (row)
			showLongest(Number(row.dataset.f));
	});
	byId('more').addEventListener('click', addRows);
	byId('panel_table').addEventListener('scroll', (event) => {
		const {scrollTop, scrollHeight, clientHeight} = event.target;
		if (scrollTop + clientHeight > scrollHeight - 600 && table.rows < table.list.length)
			addRows();
	});
	makeColumns();
}

/* ---- details ----------------------------------------------------------------------------------------------------- */

const pairs = (list) => element('dl', {}, ...list.filter(Boolean).flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]));

/* Goes down the shown tree and up again, a caller before what it called. */
function walkTree(enter, leave) {
	const {tree} = shown;
	const next = tree.first.slice(0, tree.size);
	for (let node = 0; ;) {
		if (next[node] < tree.first[node + 1]) {
			node = tree.order[next[node]++];
			enter(node);
		} else if (node) {
			leave(node);
			node = tree.parent[node];
		} else {
			return;
		}
	}
}

/*
 * Callers and called of a function, from the tree. What one function calls another within such a call is part of it: only
 * the outermost has a time, or bytes, as in cProfile's table of callers.
 */
function neighbours(fn) {
	const {tree} = shown;
	const callers = new Map();
	const called = new Map();
	const sumsOf = (node) => {
		const parent = tree.parent[node];
		const above = parent && tree.parent[parent] ? tree.fn[parent] : -1;
		return [parent && tree.fn[node] === fn ? [callers, above] : null, above === fn ? [called, tree.fn[node]] : null].filter(Boolean)
			.map(([map, key]) => {
				if (!map.has(key))
					map.set(key, {calls: 0, total: 0, open: 0});
				return map.get(key);
			});
	};
	walkTree((node) => {
		for (const sum of sumsOf(node)) {
			if (!sum.open || !weight.memory)
				sum.calls += tree.calls[node]; /* the blocks of a node are also those beneath */
			if (!sum.open++)
				sum.total += tree.total[node];
		}
	}, (node) => {
		for (const sum of sumsOf(node))
			sum.open--;
	});
	return [callers, called].map((map) => [...map].sort((a, b) => b[1].total - a[1].total));
}

function neighbourList(title, list) {
	if (!list.length)
		return [];
	return [element('h3', {}, title), element('ol', {}, ...list.slice(0, 8).map(([fn, sum]) => element('li', {},
		fn < 0 ? 'outermost' : element('button', {type: 'button', onclick: () => chooseFunction(fn)}, shorten(functionName(fn), 80)),
		element('span', {}, weight.memory && weight.memory.unit === 'blocks' ? amount(sum.total) : `${count(sum.calls)} × · ${amount(sum.total)}`)))),
	...(list.length > 8 ? [element('p', {class: 'place'}, `and ${list.length - 8} more`)] : [])];
}

function chooseFunction(fn) {
	selection.call = null;
	selection.fn = fn;
	showDetails();
	markRow();
	draw();
	drawFlame();
}

function heading(fn) {
	return [element('h2', {}, element('span', {class: 'swatch', style: `background:${cssColour(ownWord(fn))}`}), shorten(functionName(fn), 400)),
		element('p', {class: 'place'}, ...breakable(shorten(functionPlace(fn), 600)))];
}

function callDetails(call) {
	const parts = heading(call.fn);
	const list = [['took', duration(call.end - call.start)], ['began', moment(call.start)], ['ended', moment(call.end)],
		['what', `${KINDS[call.how >> 3]}, ${ENDS[call.how & 7]}`], ['thread', threadName(call.thread)],
		meta.processes.length > 1 ? ['process', processName(meta.threads[call.thread].process)] : null, ['depth', count(call.depth + 1)]];
	const stack = [];
	for (let depth = call.depth - 1; depth >= 0 && stack.length < 30; depth--) {
		const above = callAt(call.thread, depth, call.start, call.end, Math.max((call.end - call.start) / 4, pixelNs() / view.ratio));
		if (!above || above.how < 0)
			break;
		stack.push(above);
	}
	parts.push(pairs(list), element('div', {class: 'buttons'},
		element('button', {type: 'button', onclick: () => showCall(call)}, 'Zoom to it'),
		element('button', {type: 'button', onclick: () => {
			selection.stretch = {from: call.start, to: Math.max(call.end, call.start + 1)};
			stretchChosen();
			draw();
		}}, 'Count this stretch'),
		element('button', {type: 'button', onclick: () => chooseFunction(call.fn)}, 'The function')));
	if (stack.length)
		parts.push(element('h3', {}, 'Called from'), element('ol', {}, ...stack.map((above) => element('li', {},
			element('button', {type: 'button', onclick: () => {
				revealCall(above);
				selectCall(above);
			}}, shorten(functionName(above.fn), 80)), element('span', {}, duration(above.end - above.start))))));
	return parts;
}

function sliverDetails(call) {
	return [element('h2', {}, plural(call.calls, 'short call', 'short calls')),
		element('p', {}, `The longest of them is ${shorten(functionName(call.fn), 200)}.`),
		pairs([['from', moment(call.start)], ['to', moment(call.end)], ['thread', threadName(call.thread)]]),
		element('div', {class: 'buttons'}, element('button', {type: 'button', onclick: () => showCall(call)}, 'Zoom in'))];
}

function timeDetails(fn) {
	const {calls, recursive, own, total, tree} = timed;
	const once = calls[fn] - recursive[fn];
	const share = (ns) => `${duration(ns)}  (${((100 * ns) / (tree.total[0] || 1)).toFixed(1)} %)`;
	if (functions.native[fn] === NATIVE_LIBRARY)
		return [];
	return [pairs([[seen[1], recursive[fn] ? `${count(calls[fn])}, ${count(once)} of them not recursive` : count(calls[fn])],
		['by itself', share(own[fn])], ['with called', share(total[fn])],
		calls[fn] ? ['each call', `${duration(own[fn] / calls[fn])} by itself, ${duration(once ? total[fn] / once : 0)} in all`] : null,
		functions.longest[fn] ? ['longest', duration(functions.longest[fn] - 1)] : null])];
}

function memoryDetails(fn) {
	if (!memory || !memory[0].totalBlocks[fn])
		return [];
	const list = [];
	['allocated', 'live at the end', 'at the peak'].forEach((title, when) => {
		const {ownBlocks, ownBytes, totalBlocks, totalBytes} = memory[when];
		if (totalBlocks[fn])
			list.push([title, `${bytesText(ownBytes[fn])} by itself (${count(ownBlocks[fn])} ×), ${bytesText(totalBytes[fn])} in all (${count(totalBlocks[fn])} ×)`]);
	});
	return [element('h3', {}, 'Memory'), pairs(list)];
}

function functionDetails(fn) {
	const [callers, called] = neighbours(fn);
	return [...heading(fn), ...timeDetails(fn), ...memoryDetails(fn),
		element('div', {class: 'buttons'},
			functions.longest[fn] ? element('button', {type: 'button', onclick: () => showLongest(fn)}, 'Show the longest call') : '',
			element('button', {type: 'button', onclick: () => {
				byId('query').value = textAt(functions.display[fn]);
				search();
			}}, 'Highlight')),
		...neighbourList('Callers', callers), ...neighbourList('Calls', called)];
}

function showDetails() {
	const {call, fn} = selection;
	let parts;
	if (call && call.how < 0)
		parts = sliverDetails(call);
	else if (call)
		parts = callDetails(call);
	else if (fn >= 0)
		parts = functionDetails(fn);
	else
		parts = [element('p', {}, 'Click a call, a box of the flame graph or a row of the table. Wheel zooms, drag moves; Shift and drag selects a stretch of time. Press ? for keys.')];
	byId('details').replaceChildren(...parts);
}

/* ---- search ------------------------------------------------------------------------------------------------------ */

let foundAt = -1;

function matcher(text) {
	if (text.startsWith('re:')) {
		const expression = new RegExp(text.slice(3), 'i');
		return (candidate) => expression.test(candidate);
	}
	const lower = text.toLowerCase();
	return (candidate) => candidate.toLowerCase().includes(lower);
}

/* Time in which one of the found functions ran, or what it allocated: the outermost of them in each stack. */
function foundAmount() {
	const {tree} = shown;
	const inside = new Uint8Array(tree.size);
	let sum = 0;
	for (let node = 1; node < tree.size; node++) {
		inside[node] = inside[tree.parent[node]];
		if (tree.parent[node] && functions.match[tree.fn[node]] && !inside[node]) {
			inside[node] = 1;
			sum += tree.total[node];
		}
	}
	return sum;
}

function tellFound() {
	if (!functions.match) {
		byId('found').textContent = '';
		return;
	}
	/* In a stretch of time, the functions of the whole run. */
	const of = weight.memory ? shown.totalBlocks : whole.calls.map((calls, f) => calls || whole.own[f] || whole.total[f]);
	const share = shown.tree.total[0] ? (100 * foundAmount()) / shown.tree.total[0] : 0;
	const sum = functions.match.reduce((found, match, f) => found + (match && of[f] ? 1 : 0), 0);
	byId('found').textContent = `${plural(sum, 'function', 'functions')}, ${share.toFixed(1)} % ${weight.of}`;
}

function search() {
	const text = byId('query').value;
	foundAt = -1;
	functions.match = null;
	byId('query').setAttribute('aria-invalid', 'false');
	if (text) {
		let matches = null;
		try {
			matches = matcher(text);
		} catch {
			byId('query').setAttribute('aria-invalid', 'true');
			byId('found').textContent = 'not a regular expression';
		}
		if (matches)
			functions.match = Uint8Array.from({length: functions.count}, (_, f) => matches(functionName(f)) || matches(functionStandard(f)));
		if (matches)
			tellFound();
	} else {
		tellFound();
	}
	fillTable();
	draw();
	drawFlame();
}

function nextFound() {
	if (!functions.match)
		return;
	const list = [...functions.match.keys()].filter((f) => functions.match[f] && functions.longest[f]).sort((a, b) => functions.total[b] - functions.total[a]);
	if (!list.length)
		return;
	foundAt = (foundAt + 1) % list.length;
	showLongest(list[foundAt]);
}

/* ---- the page ---------------------------------------------------------------------------------------------------- */

function fact(value, name, bad = false) {
	return element('li', bad ? {class: 'bad'} : {}, element('b', {}, value), element('span', {}, name));
}

function showHeader() {
	const first = meta.processes[0];
	const program = first ? textAt(first.program) || 'python' : 'no process';
	document.title = `${program} · evprof`;
	byId('program').textContent = shorten(program, 120);
	const command = first ? first.arguments.map((i) => textAt(i)).join(' ') : '';
	byId('command').textContent = shorten(command, 500);
	byId('command').title = `${command}${first ? `\nin ${textAt(first.cwd)}` : ''}`;
	byId('facts').replaceChildren(
		fact(duration(meta.to - meta.from), 'recorded'), fact(count(meta.events), 'events'), fact(count(meta.calls), seen[1]),
		fact(count(meta.lost), 'events lost', meta.lost > 0),
		fact(`${count(meta.processes.length)} / ${count(meta.threads.length)}`, 'processes / threads'),
		...(first && textAt(first.python) ? [fact(textAt(first.python), 'Python')] : []),
		...(first && textAt(first.host) ? [fact(textAt(first.host), 'host')] : []),
		fact(new Date(meta.created).toLocaleString('en-GB', {dateStyle: 'medium', timeStyle: 'short'}), textAt(meta.trace)));
}

/* Whatever is not in this page, or not as exact as it looks. */
function showNotes() {
	const {choice} = meta;
	const chosen = [choice.pid && `process ${choice.pid}`, choice.tid && `thread ${choice.tid}`, choice.time && `${moment(meta.from)} to ${moment(meta.to)}`,
		choice.functions && 'chosen functions', choice.shortest && `calls of at least ${duration(choice.shortest)}`,
		choice.deepest && `calls at most ${choice.deepest} deep`].filter(Boolean);
	const notes = [
		meta.sampled && `Sampled ${meta.sampled} times a second: calls are those that were seen, times are estimates.`,
		textAt(meta.missing) && `The trace is not whole: ${textAt(meta.missing)}.`,
		meta.lost && `${plural(meta.lost, 'event was', 'events were')} lost while recording: counts and times are too small.`,
		chosen.length && `This is a part of the trace, chosen when the page was made: ${chosen.join(', ')}.`,
		meta.merged && `To keep this page small, ${count(meta.merged)} of ${count(meta.calls)} calls, all shorter than ${duration(meta.shortest)}, are in the timeline only as merged strips, and are missing when a stretch is counted. Table and flame graph of the whole run have them.`,
		meta.deep && `${plural(meta.deep, 'call', 'calls')} at a depth of more than 16,384 are not in the timeline.`,
		meta.stacks_folded && `${plural(meta.stacks_folded, 'call', 'calls')} of very many different stacks count for their callers in the flame graph.`,
		meta.instants_left_out && `${plural(meta.instants_left_out, 'exception or mark', 'exceptions and marks')} after the first 100,000 are not drawn.`,
		meta.steps_left_out && `${plural(meta.steps_left_out, 'step of a task is', 'steps of tasks are')} not drawn in a row of its task: there are very many.`,
		meta.memory_missing && 'Events are missing: a block that was freed by one of them counts as alive.',
		meta.without_native && `${plural(meta.without_native, 'allocation has', 'allocations have')} no native stack: they are shown at their Python function.`,
		meta.unmatched && `${plural(meta.unmatched, 'end of a call', 'ends of calls')} did not fit the stack (greenlets do that); times near them are not exact.`,
	].filter(Boolean);
	byId('notes').replaceChildren(...notes.map((note) => element('li', {}, note)));
	byId('notes').classList.toggle('bad', Boolean(meta.lost || textAt(meta.missing)));
}

function chooseTab(name) {
	for (const tab of ['flame', 'table']) {
		const on = tab === name;
		byId(`tab_${tab}`).setAttribute('aria-selected', on);
		byId(`tab_${tab}`).tabIndex = on ? 0 : -1;
		byId(`panel_${tab}`).hidden = !on;
	}
	if (name === 'table')
		fillTable();
	else
		layoutFlame();
}

function listenPage() {
	for (const [name, other] of [['flame', 'table'], ['table', 'flame']]) {
		byId(`tab_${name}`).addEventListener('click', () => chooseTab(name));
		byId(`tab_${name}`).addEventListener('keydown', (event) => {
			if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
				chooseTab(other);
				byId(`tab_${other}`).focus();
				event.stopPropagation();
			}
		});
	}
	byId('query').addEventListener('input', search);
	byId('query').addEventListener('keydown', (event) => {
		if (event.key === 'Enter')
			nextFound();
	});
	byId('help_open').addEventListener('click', () => byId('help').showModal());
	byId('scope_view').addEventListener('click', () => {
		selection.stretch = {from: Math.max(Math.round(view.from), meta.from), to: Math.min(Math.round(view.to), meta.to)};
		stretchChosen();
		draw();
	});
	byId('scope_zoom').addEventListener('click', () => setView(selection.stretch.from, selection.stretch.to));
	byId('scope_clear').addEventListener('click', clearStretch);
	const splitter = byId('splitter');
	const resize = (height) => document.documentElement.style.setProperty('--lower', `${Math.min(Math.max(height, 60), innerHeight - 240)}px`);
	splitter.addEventListener('pointerdown', (event) => splitter.setPointerCapture(event.pointerId));
	splitter.addEventListener('pointermove', (event) => {
		if (event.buttons)
			resize(innerHeight - event.clientY);
	});
	splitter.addEventListener('keydown', (event) => {
		const by = {ArrowUp: 24, ArrowDown: -24}[event.key];
		if (by) {
			resize(byId('lower').clientHeight + by);
			event.preventDefault();
		}
	});
	new ResizeObserver(() => {
		draw();
		drawFlame();
	}).observe(byId('tracks'));
	new ResizeObserver(() => drawFlame()).observe(byId('flame_box'));
	dark.addEventListener('change', () => {
		makePalette();
		clearAtlas();
		draw();
		drawFlame();
		fillTable();
	});
}

async function begin() {
	if (typeof DecompressionStream === 'undefined')
		throw new Error('this browser is too old for the page: it needs Chrome 80, Firefox 113 or Safari 16.4, or later');
	await loadTexts();
	showHeader();
	showNotes();
	await Promise.all([loadFunctions(), loadDirectory(), loadTimeline()]);
	await loadMemory();
	makePalette();
	await loadTree();
	listenTracks();
	listenRuler();
	listenKeys();
	listenFlame();
	listenTable();
	listenWeight();
	listenPage();
	makeTracks();
	wholeView();
	layoutFlame();
	showDetails();
	tellScope();
	if (memory && !meta.calls)
		await chooseWeight('bytes');
	drawNow();
	await Promise.all(cache.loading.values());
	drawNow();
	return performance.now();
}

/* What tests/e2e/test_html.c asks for. ready: ms from the start of loading to the first whole picture. */
globalThis.evprof = {meta, functions, view, selection, setView, zoomAt, wholeView, drawNow, aggregate, functionName, functionStandard, functionFile, shortFile,
	ownWord, search, callAt, hit, visible, neighbours, threadName, dark, palette, chooseWeight,
	get weight() {
		return weight;
	},
	cname: (f) => textAt(functions.name[f]),
	display: (f) => textAt(functions.display[f]),
	/* How much was made ready to be shown, of all that there is. */
	get work() {
		return {texts: texts.ends.length, decoded: Object.keys(texts.known).length, coloured: palette.words.reduce((sum, word) => sum + (word > 0), 0), unpacked};
	},
	get heaps() {
		return heaps;
	},
	get instants() {
		return instants;
	},
	get tracks() {
		return tracks;
	}, processName, get shown() {
		return shown;
	}};
globalThis.evprof.ready = begin().catch((error) => {
	byId('notes').replaceChildren(element('li', {role: 'alert'}, `The report cannot be shown: ${error.message}`));
	throw error;
});

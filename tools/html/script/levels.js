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


/* ---- weights: what flame graph and table show --------------------------------------------------------------------- */

/*
 * memory: the columns of what the page has of it (made, at the end, at the peak, temporary), and whether blocks are counted or
 * bytes; only: nothing but blocks.
 */
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
	temporary: {key: 'temporary', title: 'Temporary allocations', text: (value) => plural(value, 'allocation', 'allocations'), of: 'of the allocations',
		none: 'no allocation was temporary', own: 'ownBlocks', memory: {when: 3, unit: 'blocks', blocks: ['allocation', 'allocations'], only: true}},
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
	memory = [0, 1, 2, 3].map((when) => {
		const [ownBlocks, ownBytes] = columns.slice(2 * when, 2 * when + 2).map(byFunction);
		const [totalBlocks, totalBytes] = columns.slice(8 + 2 * when, 10 + 2 * when).map(byFunction);
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
async function weigh(weight) {
	const {when, unit} = weight.memory;
	if (memory.weighed.has(weight.key))
		return memory.weighed.get(weight.key);
	memory.columns ||= (await unpack(meta.memory)).map(numbers);
	const [distance, fn, ...columns] = memory.columns;
	memory.tree ||= unpackTree(distance, fn);
	const [blocks, bytes] = columns.slice(2 * when, 2 * when + 2).map((column) => [0, ...column]);
	const tree = finishTree({...memory.tree, calls: blocks, bytes, total: (unit === 'bytes' ? bytes : blocks).slice()});
	const sums = memory[when];
	const result = {tree, ...sums, least: meta.memory_least ? `${((100 * meta.memory_least) / 2 ** 32).toPrecision(2)} %` : '',
		own: unit === 'bytes' ? sums.ownBytes : sums.ownBlocks, total: unit === 'bytes' ? sums.totalBytes : sums.totalBlocks};
	memory.weighed.set(weight.key, result);
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
	showScope();
}

let weighing = 0;

async function selectWeight(key) {
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

/* Of what is alive the peak was not kept. */
const knownWeights = () => Object.values(WEIGHTS).filter(({key}) => !(meta.alive_only && key === 'peak'));

function nextWeight() {
	const keys = knownWeights().map(({key}) => key);
	if (memory)
		selectWeight(keys[(keys.indexOf(byId('weight').value) + 1) % keys.length]);
}

function listenWeight() {
	byId('weight_choice').hidden = !memory;
	byId('weight').replaceChildren(...knownWeights().map(({key, title}) => element('option', {value: key}, title)));
	byId('weight').addEventListener('change', (event) => selectWeight(event.target.value));
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

/* The moment, or the part of the run, whose memory is shown. */
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

function showScope(text) {
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
	showScope('counting…');
	const began = performance.now();
	const progress = {done: 0, report: () => {
		if (performance.now() - began > 400)
			showScope(`counting… ${count(progress.done)} calls`);
	}};
	const result = await aggregate(stretch.from, stretch.to, () => turn !== counting, progress);
	if (!result)
		return;
	finishTree(result.tree);
	showTimed(Object.assign(result, {least: ''}));
	fillSites();
	showScope(meta.shortest ? `${duration(stretch.to - stretch.from)} from ${moment(stretch.from)}, without calls below ${duration(meta.shortest)}` : '');
}

function clearStretch() {
	counting++;
	selection.stretch = null;
	if (timed !== whole)
		showTimed(whole);
	fillSites();
	showScope();
	draw();
}


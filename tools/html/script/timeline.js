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
let counters = null;
let thinned = null;
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
	const [process, shift, block, points, peakTime, end, siteBlocks, moments, rows] = (await unpack(meta.heaps)).map(numbers);
	let begin = {block: -1};
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
			peakTime: meta.alive_only ? null : peakTime[i], end: end[i] ? end[i] - 1 : null};
		if (begin.block !== siteBlocks[i])
			begin = {block: siteBlocks[i], moment: 0, row: 0, value: 0};
		heap.sites = {...begin, moments: moments[i], rows: rows[i]};
		begin = {block: begin.block, moment: begin.moment + moments[i], row: begin.row + rows[i], value: begin.value + rows[i] * moments[i]};
		heap.peak = heap.high.reduce((most, value) => Math.max(most, value), 0);
		heap.resident = {time: [], bytes: []};
		heap.top = heap.peak; /* of both curves */
		heaps.push(heap);
	}
	await loadResident();
	const [thread, time, kind, value] = (await unpack(meta.instants)).map(numbers);
	instants = meta.threads.map(() => []);
	for (let i = 0; i < thread.length; i++)
		instants[thread[i]].push({time: time[i], kind: kind[i], value: value[i]});
	[activity] = (await unpack(meta.activity)).map(numbers);
	await loadTasks();
	await loadCounters();
	await loadThinned();
}

/* By thread: the stretches in which not all calls were recorded (EVPROF_BUDGET), in order. */
async function loadThinned() {
	const [thread, start, length, text] = (await unpack(meta.thinned)).map(numbers);
	thinned = meta.threads.map(() => []);
	for (let i = 0; i < thread.length; i++)
		thinned[thread[i]].push({start: start[i], end: start[i] + length[i], text: text[i]});
}

/* The resident size of the processes that have a heap. */
async function loadResident() {
	const [process, time, bytes] = (await unpack(meta.resident)).map(numbers);
	const heapOf = new Map(heaps.map((heap) => [heap.process, heap]));
	for (let i = 0; i < process.length; i++) {
		const heap = heapOf.get(process[i]);
		if (!heap)
			continue;
		heap.resident.time.push(time[i]);
		heap.resident.bytes.push(bytes[i]);
		heap.top = Math.max(heap.top, bytes[i]);
	}
}

/* By thread: its tasks by the number of their names, and the steps of each, in order. */
async function loadTasks() {
	const [thread, start, length, name, more] = (await unpack(meta.steps)).map(numbers);
	tasks = meta.threads.map(() => new Map());
	for (let i = 0; i < thread.length; i++) {
		const own = tasks[thread[i]];
		if (!own.has(name[i]))
			own.set(name[i], []);
		own.get(name[i]).push({start: start[i], end: start[i] + length[i], more: more[i]});
	}
}

/* By process: its counters by the number of their names, with times and values in order. */
async function loadCounters() {
	const [process, name, time, low, high] = (await unpack(meta.counters)).map(numbers);
	const order = [...time.keys()].sort((a, b) => time[a] - time[b] || a - b);
	const double = new DataView(new ArrayBuffer(8));
	counters = meta.processes.map(() => new Map());
	for (const i of order) {
		const own = counters[process[i]];
		if (!own.has(name[i]))
			own.set(name[i], {name: textAt(name[i]), time: [], value: [], least: 0, most: 0});
		const counter = own.get(name[i]);
		double.setUint32(0, high[i]);
		double.setUint32(4, low[i]);
		const value = double.getFloat64(0);
		counter.time.push(time[i]);
		counter.value.push(value);
		counter.least = Math.min(counter.least, value);
		counter.most = Math.max(counter.most, value);
	}
}

/* Processes, heaps, counters, and threads with their tasks, one below the other. */
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
		for (const counter of counters[p].values())
			tracks.push({kind: 'counter', process: p, counter});
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
		else if (track.kind === 'counter')
			track.height = HEAP_ROW;
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
		return element('div', {class: 'track heap'}, 'Heap', element('br'), meta.alive_only ? 'peak not kept' : `peak ${bytesText(track.heap.peak)}`);
	if (track.kind === 'counter')
		return element('div', {class: 'track heap', title: `${track.counter.name} · ${plural(track.counter.time.length, 'value', 'values')}`}, track.counter.name,
			element('br'), `${numberText(track.counter.least)} to ${numberText(track.counter.most)}`);
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


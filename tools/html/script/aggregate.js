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

/* The calls of one level of a thread, the last to end first. kept: what was unpacked last at this level, which short threads share. */
class Backwards {
	constructor(list, kept) {
		this.list = list;
		this.kept = kept;
		this.at = -1;
		this.calls = null;
	}
	async ready() {
		while (this.at < 0 && this.list.length) {
			const segment = this.list.pop();
			if (this.kept.block !== segment.block)
				Object.assign(this.kept, {block: segment.block, columns: (await unpack(segment.block)).map(numbers)});
			this.calls = decodeCalls(this.kept.columns, segment);
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

/* kept: by level, of the threads before. */
async function aggregateThread(counter, thread, {kept, slice, cancelled, progress}) {
	const streams = [];
	for (let level = meta.floor; level <= meta.top; level++) {
		const list = segmentsIn(thread, level * 2, counter.from, counter.to);
		if (list.length)
			streams.push(new Backwards(list, kept[level] ||= {}));
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
async function aggregate(from, to, cancelled = () => false, progress = {done: 0, report: () => {}}) {
	const fresh = () => new Float64Array(functions.count);
	const result = {from, to, calls: fresh(), recursive: fresh(), own: fresh(), total: fresh(), open: fresh(), tree: newTree(), counted: 0};
	const run = {kept: [], slice: slicer(), cancelled, progress};
	for (let t = 0; t < meta.threads.length && !cancelled(); t++) {
		const counter = new Counter(result, meta.threads[t].process, from, to);
		await aggregateThread(counter, t, run);
		counter.end();
		progress.report();
	}
	return cancelled() ? null : result;
}


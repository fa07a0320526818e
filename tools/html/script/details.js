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
function callersAndCallees(fn) {
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

function callList(title, list) {
	if (!list.length)
		return [];
	return [element('h3', {}, title), element('ol', {}, ...list.slice(0, 8).map(([fn, sum]) => element('li', {},
		fn < 0 ? 'outermost' : element('button', {type: 'button', onclick: () => selectFunction(fn)}, shorten(functionName(fn), 80)),
		element('span', {}, weight.memory && weight.memory.unit === 'blocks' ? amount(sum.total) : `${count(sum.calls)} × · ${amount(sum.total)}`)))),
	...(list.length > 8 ? [element('p', {class: 'place'}, `and ${list.length - 8} more`)] : [])];
}

function selectFunction(fn) {
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
		const above = callerAt(call, depth, Math.max((call.end - call.start) / 4, pixelNs() / view.ratio));
		if (!above)
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
		element('button', {type: 'button', onclick: () => selectFunction(call.fn)}, 'The function')));
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
	return [pairs([[seen[1], mark(fn, recursive[fn] ? `${count(calls[fn])}, ${count(once)} of them not recursive` : count(calls[fn]))],
		estimated(fn) ? ['', estimateText(fn)] : null,
		['by itself', mark(fn, share(own[fn]))], ['with called', mark(fn, share(total[fn]))],
		calls[fn] ? ['each call', `${duration(own[fn] / calls[fn])} by itself, ${duration(once ? total[fn] / once : 0)} in all`] : null,
		functions.longest[fn] ? ['longest', duration(functions.longest[fn] - 1)] : null])];
}

function memoryDetails(fn) {
	if (!memory || !memory[0].totalBlocks[fn])
		return [];
	const list = [];
	['allocated', 'live at the end', 'at the peak'].forEach((title, when) => {
		const {ownBlocks, ownBytes, totalBlocks, totalBytes} = memory[when];
		if (totalBlocks[fn] && !(meta.alive_only && when === WEIGHTS.peak.memory.when))
			list.push([title, `${bytesText(ownBytes[fn])} by itself (${count(ownBlocks[fn])} ×), ${bytesText(totalBytes[fn])} in all (${count(totalBlocks[fn])} ×)`]);
	});
	return [element('h3', {}, 'Memory'), pairs(list)];
}

function functionDetails(fn) {
	const [callers, called] = callersAndCallees(fn);
	return [...heading(fn), ...timeDetails(fn), ...memoryDetails(fn),
		element('div', {class: 'buttons'},
			functions.longest[fn] ? element('button', {type: 'button', onclick: () => showLongest(fn)}, 'Show the longest call') : '',
			element('button', {type: 'button', onclick: () => {
				byId('query').value = textAt(functions.display[fn]);
				search();
			}}, 'Highlight')),
		...callList('Callers', callers), ...callList('Calls', called)];
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


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
	const these = (ids, one, many) => ids.length && shorten(`${ids.length === 1 ? one : many} ${ids.join(', ')}`, 200);
	const filters = [these(choice.processes, 'process', 'processes'), these(choice.threads, 'thread', 'threads'), choice.time && `${moment(meta.from)} to ${moment(meta.to)}`,
		choice.functions && 'filtered functions', choice.shortest && `calls of at least ${duration(choice.shortest)}`,
		choice.deepest && `calls at most ${choice.deepest} deep`].filter(Boolean);
	const notes = [
		meta.sampled && `Sampled ${meta.sampled} times a second: calls are those that were seen, times are estimates.`,
		meta.budget && `Recorded within a budget of ${meta.budget} %: where the timeline is hatched, calls of short functions were not recorded, or exceptions; the time of the calls is in their callers. The flame graph has what was recorded. ~ in the table is an estimate.`,
		meta.memory_interval && `Memory is sampled every ${bytesText(meta.memory_interval)}: figures are estimates.`,
		meta.alive_only && "Memory is what is alive at the end, and sums: the curve has no block that was freed, so it shows no peak.",
		textAt(meta.missing) && `The trace is not whole: ${textAt(meta.missing)}.`,
		meta.lost && `${plural(meta.lost, 'event was', 'events were')} lost while recording: counts and times are too small.`,
		filters.length && `This page shows a part of the trace, filtered by the export: ${filters.join(', ')}.`,
		meta.merged && `To keep this page small, ${count(meta.merged)} of ${count(meta.calls)} calls, all shorter than ${duration(meta.shortest)}, are in the timeline only as merged strips, and are missing when a stretch is counted. Table and flame graph of the whole run have them.`,
		meta.deep && `${plural(meta.deep, 'call', 'calls')} at a depth of more than 16,384 are not in the timeline.`,
		meta.stacks_folded && `${plural(meta.stacks_folded, 'call', 'calls')} of very many different stacks count for their callers in the flame graph.`,
		meta.instants_left_out && `${plural(meta.instants_left_out, 'exception or mark', 'exceptions and marks')} after the first 100,000 are not drawn.`,
		meta.values_left_out && `${plural(meta.values_left_out, 'value of a counter', 'values of counters')} after the first 200,000 are not drawn.`,
		meta.steps_left_out && `${plural(meta.steps_left_out, 'step of a task is', 'steps of tasks are')} not drawn in a row of its task: there are very many.`,
		meta.sites_left_out && `${plural(meta.sites_left_out, 'line', 'lines')} with the least memory alive are summed up at the moments of the curve.`,
		meta.memory_missing && 'Events are missing: a block that was freed by one of them counts as alive.',
		meta.without_native && `${plural(meta.without_native, 'allocation has', 'allocations have')} no native stack: they are shown at their Python function.`,
		meta.unmatched && `${plural(meta.unmatched, 'end of a call', 'ends of calls')} did not fit the stack (greenlets do that); times near them are not exact.`,
	].filter(Boolean);
	byId('notes').replaceChildren(...notes.map((note) => element('li', {}, note)));
	byId('notes').classList.toggle('bad', Boolean(meta.lost || textAt(meta.missing)));
}

const TABS = ['flame', 'table', 'sites'];

function selectTab(name) {
	for (const tab of TABS) {
		const on = tab === name;
		byId(`tab_${tab}`).setAttribute('aria-selected', on);
		byId(`tab_${tab}`).tabIndex = on ? 0 : -1;
		byId(`panel_${tab}`).hidden = !on;
	}
	if (name === 'table')
		fillTable();
	else if (name === 'sites')
		fillSites();
	else
		layoutFlame();
	draw();
}

/* The next tab to the right or to the left, of those that the page shows. */
function otherTab(name, right) {
	const shownTabs = TABS.filter((tab) => !byId(`tab_${tab}`).hidden);
	return shownTabs[(shownTabs.indexOf(name) + (right ? 1 : shownTabs.length - 1)) % shownTabs.length];
}

function listenPage() {
	for (const name of TABS) {
		byId(`tab_${name}`).addEventListener('click', () => selectTab(name));
		byId(`tab_${name}`).addEventListener('keydown', (event) => {
			if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
				const other = otherTab(name, event.key === 'ArrowRight');
				selectTab(other);
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
	listenSites();
	listenPage();
	makeTracks();
	wholeView();
	layoutFlame();
	showDetails();
	showScope();
	if (memory && !meta.calls)
		await selectWeight('bytes');
	drawNow();
	await Promise.all(cache.loading.values());
	drawNow();
	return performance.now();
}

/* What tests/e2e/test_html.c asks for. ready: ms from the start of loading to the first whole picture. */
globalThis.evprof = {meta, functions, view, selection, setView, zoomAt, wholeView, drawNow, aggregate, functionName, functionStandard, functionFile, shortFile,
	ownWord, search, showMoment, pickSites, sites, callAt, hit, visible, callersAndCallees, threadName, dark, palette, selectWeight,
	get weight() {
		return weight;
	},
	cname: (f) => textAt(functions.name[f]),
	display: (f) => textAt(functions.display[f]),
	textAt,
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

/* ---- functions --------------------------------------------------------------------------------------------------- */

/* Shares and rates of the last stretch. */
const ofStretch = (value) => (evprof.live.stretch_ns ? value / evprof.live.stretch_ns : 0);
const rate = (value) => ofStretch(value) * 1e9;

function sortBy(order) {
	view.sort = order;
	ask();
}

/* Of the shown rows, for the bars. */
const most = {own: 1, total: 1};

const TIMES = [
	{title: '%own', sort: 'own', hint: 'time in the function itself, in the last refresh (O)', text: (row) => percent(ofStretch(row.own_ns)).slice(0, -2),
		share: (row) => row.own_ns / most.own},
	{title: '%total', sort: 'total', hint: 'with what it called (T)', text: (row) => percent(ofStretch(row.total_ns)).slice(0, -2), share: (row) => row.total_ns / most.total},
];
const RATES = [
	{title: 'calls/s', sort: 'calls', hint: 'of the last refresh (C)', text: (row) => short(rate(row.calls))},
	{title: 'allocs/s', sort: 'allocations', hint: 'blocks that it allocated (A)', text: (row) => short(rate(row.allocations))},
	{title: 'bytes/s', sort: 'bytes', hint: 'bytes that it allocated (B)', text: (row) => bytesText(rate(row.bytes))},
];
const SINCE = [
	{title: 'own', group: 'since', hint: 'time in the function itself, since this server began', text: (row) => duration(row.since.own_ns)},
	{title: 'total', group: 'since', hint: 'with what it called, since this server began', text: (row) => duration(row.since.total_ns)},
	{title: 'calls', group: 'since', hint: 'since this server began', text: (row) => short(row.since.calls)},
];
const NAMES = [
	{title: 'function', left: true, text: (row) => row.function, title_of: (row) => row.function},
	{title: 'place', left: true, text: place, title_of: longPlace},
];

const functionTable = new Table('functions', [...TIMES, ...NAMES, ...RATES, ...SINCE],
	{key: (row) => row.id, pick: (row) => lookAt(row.id), sort: () => view.sort, sortable: sortBy});

function lookAt(id) {
	view.focus = id;
	past.id = id;
	past.values = [];
	showTab('functions');
	ask();
}

function lookAway() {
	view.focus = null;
	byId('details').hidden = true;
	byId('details').replaceChildren();
	byId('panel_functions').classList.remove('split');
	ask();
}

/* What the function that is looked at did while it was looked at: [ms, share of own, calls/s]. */
const past = {id: null, values: []};

function takePast(live) {
	const row = live.focus;
	if (!row || row.id !== past.id || !live.stretch_ns)
		return;
	past.values.push([live.at_ms, ofStretch(row.total_ns), rate(row.calls)]);
	past.values.splice(0, past.values.length - SAMPLES_KEPT);
}

function sparkline(member) {
	const most = Math.max(...past.values.map((value) => value[member]), 1e-9);
	const points = past.values.map((value, i) =>
		`${(i / Math.max(1, past.values.length - 1) * 100).toFixed(1)} ${(27 - value[member] / most * 25).toFixed(1)}`);
	return svg('svg', {viewBox: '0 0 100 28', preserveAspectRatio: 'none', class: 'spark', 'aria-hidden': 'true'},
		svg('path', {class: 'curve', d: points.length > 1 ? `M${points.join('L')}` : ''}));
}

function fact(name, value) {
	return [element('dt', {}, name), element('dd', {}, value)];
}

function sideList(title, rows, counted) {
	const list = rows.map((row) => element('li', {},
		element('button', {type: 'button', title: longPlace(row), onclick: () => lookAt(row.id)}, row.function),
		element('span', {}, `${short(rate(row.calls))}/s  ${percent(ofStretch(row.total_ns))}`)));
	const none = counted ? 'none in the last refresh' : 'counting…';
	return [element('h3', {}, title), list.length ? element('ol', {}, ...list) : element('p', {class: 'faint'}, none)];
}

function showDetails(live) {
	const box = byId('details'), row = live.focus;
	byId('panel_functions').classList.toggle('split', view.focus !== null);
	if (view.focus === null || !row || row.id !== view.focus)
		return;
	const focused = box.contains(document.activeElement) ? [...box.querySelectorAll('button')].indexOf(document.activeElement) : -1;
	box.hidden = false;
	box.replaceChildren(
		element('button', {type: 'button', class: 'close', 'aria-label': 'Close the details', title: 'Close (Esc)', onclick: lookAway}, '×'),
		element('h2', {}, row.function), element('p', {class: 'place'}, longPlace(row)),
		element('dl', {}, ...fact('own', `${percent(ofStretch(row.own_ns))} now, ${duration(row.since.own_ns)} in all`),
			...fact('total', `${percent(ofStretch(row.total_ns))} now, ${duration(row.since.total_ns)} in all`),
			...fact('calls', `${short(rate(row.calls))}/s now, ${count(row.since.calls)} in all`),
			...fact('each', row.calls ? `${duration(row.total_ns / row.calls)} in the last refresh` : NONE),
			...fact('allocations', `${short(rate(row.allocations))}/s, ${bytesText(rate(row.bytes))}/s`)),
		element('h3', {}, '%total and calls/s since it was picked'), element('div', {class: 'sparks'}, sparkline(1), sparkline(2)),
		...sideList('Callers', row.callers, live.focus_counted), ...sideList('Callees', row.callees, live.focus_counted));
	if (focused >= 0) {
		const buttons = box.querySelectorAll('button');
		buttons[Math.min(focused, buttons.length - 1)].focus({preventScroll: true});
	}
}

function showFunctions(live) {
	most.own = Math.max(1, ...live.functions.map((row) => row.own_ns));
	most.total = Math.max(1, ...live.functions.map((row) => row.total_ns));
	functionTable.fill(live.functions, view.focus);
	showNone('panel_functions', live.functions.length ? '' : view.filter ? `No function with “${view.filter}” ran in the last refresh.` :
		live.processes.length ? 'No function ran in the last refresh.' : live.problem || 'No process is recorded.');
	showDetails(live);
}

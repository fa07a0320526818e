/* ---- table ------------------------------------------------------------------------------------------------------- */

/* text() is what stands in a cell; bar: the value's share of all is drawn behind it. */
const seconds = (ns) => (ns / 1e9).toFixed(6);
const primitive = (f) => shown.calls[f] - shown.recursive[f];
/* EVPROF_BUDGET: in the times of the whole run, what stands for calls that were not recorded. A stretch has those that were. */
const estimated = (f) => !selection.stretch && functions.estimate[f] > 0;
const mark = (f, text) => (estimated(f) && text ? `~${text}` : text);
function estimateText(f) {
	const width = functions.estimate[f] - 2;
	return `an estimate: not all calls were recorded${width < 0 ? '' : `; calls ±${count(width)}, 95 %`}`;
}
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
function memoryColumns({unit, blocks: [, many], only}) {
	const exact = (bytes) => plural(bytes, 'byte', 'bytes');
	const columns = [
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
	return only ? columns.filter(({key}) => !key.endsWith('Bytes')) : columns;
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
	const title = column.exact ? column.exact(value) : !weight.memory && estimated(f) ? estimateText(f) : null;
	const text = column.text(value, f);
	return element('td', {...(column.bar ? {class: 'share', style: `--share:${share}%`} : {}), ...(title ? {title} : {})},
		weight.memory ? text : mark(f, text));
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
		row.classList.toggle('selected', Number(row.dataset.f) === selection.fn);
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


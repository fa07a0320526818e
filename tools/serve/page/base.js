/*
 * serve.js - the page of evprof serve: what recorded processes do now.
 *
 * The server answers `live` with the data of the last refresh (docs/formats.md); all views are drawn from one answer. Text of
 * programs becomes text, never HTML. Nothing is asked of any other host.
 *
 *   base        the state, and small things
 *   format      numbers as text
 *   chart       the charts of the last minutes
 *   table       tables that keep their rows
 *   functions   the table of functions, and the details of one
 *   processes   processes, snapshots, collectors
 *   threads     threads with their stacks, tasks
 *   live        asks, draws, keys
 */

/* What is looked at. */
const view = {tab: 'functions', pid: 0, sort: 'own', filter: '', focus: null, paused: false, rangeS: 180};

/* For tests, and for a look from the console. */
const evprof = {view, live: null, refreshes: 0};

function setText(node, text) {
	if (node.textContent !== text)
		node.textContent = text;
}

/* The last two parts of a path: "app/views.py". */
function shortPath(path) {
	return path.split('/').slice(-2).join('/');
}

function place(row) {
	return row.file === '~' || !row.file ? 'C' : `${shortPath(row.file)}:${row.line}`;
}

function longPlace(row) {
	return row.file === '~' || !row.file ? 'a function in C' : `${row.file}:${row.line}`;
}

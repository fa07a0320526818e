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
 *   sites       the lines whose blocks were alive at a moment
 *   timeline    tracks, drawing, pointer, keys
 *   flame       the flame graph
 *   table       the table of cProfile
 *   details     the call or function that was clicked
 */

const KINDS = ['Python call', 'generator goes on', 'exception thrown in', 'C call', 'was running already'];
const ENDS = ['was still running', 'returned', 'yielded', 'left by an exception'];
const KIND_RUNNING = 4;
const NATIVE_LIBRARY = 2; /* of functions.native: of a native stack, and its file is the library */
const INSTANTS = {10: 'exception', 16: 'lost', 22: 'fork', 23: 'exec', 24: 'exec_failed', 25: 'exit', 26: 'mark', 27: 'pause'};

/* ---- small things ------------------------------------------------------------------------------------------------ */

/* A line may end behind a slash of the path. */
function breakable(path) {
	return path.split(/(?<=\/)/).flatMap((part) => [part, document.createElement('wbr')]);
}

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

/* A value of a counter. */
const numberText = (value) => (Number.isInteger(value) && Math.abs(value) < 1e15 ? count(value) : String(Number(value.toPrecision(7))));

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


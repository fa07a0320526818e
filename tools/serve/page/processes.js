/* ---- processes, snapshots, collectors ---------------------------------------------------------------------------- */

/* Of the live data and of the collectors' status, by pid. */
function processRows(live) {
	const rows = new Map(live.processes.map((row) => [row.pid, {...row, status: {}}]));
	for (const collector of live.collectors)
		for (const status of collector.processes || []) {
			const row = rows.get(status.pid) || {pid: status.pid, program: status.program, events: 0, lost: 0, calls: 0, threads: null, tasks: null,
				cpu_ns: null, rss_bytes: null};
			row.status = status;
			rows.set(status.pid, row);
		}
	return [...rows.values()].sort((a, b) => b.events - a.events || a.pid - b.pid);
}

function snapshotForm() {
	return element('form', {method: 'post', target: '_blank', rel: 'noopener'}, element('button', {type: 'submit', class: 'snap'}, 'Snapshot'));
}

function updateForm(cell, row) {
	cell.firstChild.action = `snapshot?pid=${row.pid}&last=${byId('last').value}`;
	cell.firstChild.firstChild.title = `Copy what process ${row.pid} did last, and open its report`;
}

function lookButton(row) {
	return element('button', {type: 'button', class: 'link', title: 'Only this process',
		onclick: () => { setProcess(row.data.pid); showTab('functions'); }});
}

const recordingText = (row) => row.status.recording || (row.sampled ? 'sample' : 'events');

const processTable = new Table('processes', [
	{title: 'pid', node: lookButton, update: (cell, row) => setText(cell.firstChild, String(row.pid))},
	{title: 'program', left: true, text: (row) => row.program, title_of: (row) => row.status.trace || ''},
	{title: 'recording', left: true, text: recordingText},
	{title: 'CPU', text: (row) => orNone(row.cpu_ns, (ns) => percent(ofStretch(ns))), share: (row) => ofStretch(row.cpu_ns || 0)},
	{title: 'memory', hint: 'resident', text: (row) => orNone(row.rss_bytes, bytesText)},
	{title: 'events/s', text: (row) => short(rate(row.events))},
	{title: 'calls/s', text: (row) => short(rate(row.calls))},
	{title: 'threads', text: (row) => orNone(row.threads, String)},
	{title: 'tasks', hint: 'that took a step in the last refresh', text: (row) => orNone(row.tasks, String)},
	{title: 'lost', hint: 'events, since it is recorded', text: (row) => orNone(row.status.lost, short)},
	{title: 'trace', hint: 'what it has added to its trace', text: (row) => orNone(row.status.bytes, bytesText)},
	{title: 'keeps', left: true, hint: 'the last stretch that is kept', text: (row) => row.status.keep || 'all'},
	{title: '', left: true, node: snapshotForm, update: updateForm},
], {key: (row) => row.pid, sort: () => ''});

const STATES = {copies: 'is copied…', exports: 'report is made…', ready: 'ready', failed: 'failed'};

function snapshotLinks() {
	return element('span', {}, element('a', {target: '_blank', rel: 'noopener'}, 'report'), ' ', element('a', {}, 'trace'));
}

function updateLinks(cell, row) {
	const [report, trace] = cell.querySelectorAll('a');
	cell.firstChild.hidden = row.state !== 'ready';
	report.href = `report/${row.number}.html`;
	trace.href = `report/${row.number}.evp`;
}

const snapshotTable = new Table('snapshots', [
	{title: 'of', left: true, text: (row) => `${row.program} ${row.pid}`},
	{title: 'at', text: (row) => clock(row.at_ms)},
	{title: 'has', left: true, text: (row) => (row.last_s ? `the last ${row.last_s} s` : 'all')},
	{title: 'state', left: true, text: (row) => (row.state === 'failed' ? row.error : STATES[row.state])},
	{title: '', left: true, node: snapshotLinks, update: updateLinks},
], {key: (row) => row.number, sort: () => ''});

const collectorTable = new Table('collectors', [
	{title: 'pid', text: (row) => String(row.pid)},
	{title: 'processes', text: (row) => String(row.processes)},
	{title: 'up', text: (row) => duration(row.uptime_s * 1e9)},
	{title: 'CPU so far', text: (row) => orNone(row.cpu_s, (s) => duration(s * 1e9))},
	{title: 'memory', text: (row) => orNone(row.rss_bytes, bytesText)},
	{title: 'traces', text: (row) => orNone(row.disk_bytes, bytesText)},
	{title: 'disk left', text: (row) => orNone(row.free_bytes, bytesText)},
], {key: (row) => row.pid, sort: () => ''});

function showProcesses(live) {
	const rows = processRows(live);
	processTable.fill(rows, view.pid);
	showNone('panel_processes', rows.length ? '' : live.problem || 'No process is recorded.');
	byId('snapshots_box').hidden = !live.snapshots.length;
	snapshotTable.fill(live.snapshots);
	collectorTable.fill(live.collectors.map((row) => ({...row.collector, processes: (row.processes || []).length})));
}

/* The choice of a process in the header: that of the view stays, also when it has gone. */
function showChoice(live) {
	const select = byId('process');
	const wanted = [[0, 'all processes'], ...live.processes.map((row) => [row.pid, `${row.program} ${row.pid}`])];
	if (view.pid && !live.processes.some((row) => row.pid === view.pid))
		wanted.push([view.pid, `${view.pid} (gone)`]);
	const text = JSON.stringify(wanted);
	if (select.dataset.wanted !== text && document.activeElement !== select) {
		select.dataset.wanted = text;
		select.replaceChildren(...wanted.map(([pid, name]) => element('option', {value: pid}, name)));
	}
	select.value = String(view.pid);
}

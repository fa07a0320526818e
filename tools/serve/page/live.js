/* ---- asking and drawing ------------------------------------------------------------------------------------------ */

const TABS = ['functions', 'processes', 'threads', 'tasks'];
const HIDDEN_MS = 10000; /* between two refreshes of a page that nobody sees */
const ANSWER_MS = 5000; /* an answer may take so long, or three refreshes */
let timer = 0, asking = null, silent = 0;

function address() {
	const values = {pid: view.pid, sort: view.sort, filter: view.filter, rows: 200, history: view.pid,
		after: recent.pid === view.pid ? newestSample() : 0, stacks: view.tab === 'threads' ? 1 : 0};
	if (view.focus !== null)
		values.focus = view.focus;
	return `live?${new URLSearchParams(values)}`;
}

/* A screen reader announces a change of the state, and not the time of each refresh. */
function setState(kind, text) {
	if (byId('lamp').className !== kind)
		setText(byId('announced'), text);
	byId('lamp').className = kind;
	setText(byId('state_text'), text);
}

/* How much of what there is the view shows. */
function shownText(live, tasks) {
	const cut = (all, rows) => (all > rows.length ? `, ${rows.length} are shown` : '');
	if (view.tab === 'functions')
		return `${plural(live.function_count, 'function', 'functions')} ran${cut(live.function_count, live.functions)}; `;
	return view.tab === 'tasks' ? `${plural(tasks, 'task', 'tasks')} took steps${cut(tasks, live.tasks)}; ` : '';
}

function summary(live) {
	const shown = view.pid ? live.processes.filter((row) => row.pid === view.pid) : live.processes;
	const sum = (member) => shown.reduce((all, row) => all + (row[member] || 0), 0);
	const lost = sum('lost');
	return `${shownText(live, sum('tasks'))}${plural(shown.length, 'process', 'processes')}, ${plural(sum('threads'), 'thread', 'threads')}, ` +
		`${plural(sum('tasks'), 'task', 'tasks')}${lost ? `, ${count(lost)} events lost` : ''}`;
}

function draw(live) {
	setText(byId('host'), `on ${live.host}${live.target === 'all' ? '' : `: ${live.target}`}`);
	byId('problem').hidden = !live.problem;
	setText(byId('problem'), live.problem);
	setText(byId('scope'), summary(live));
	showChoice(live);
	drawCharts();
	if (view.tab === 'functions')
		showFunctions(live);
	else if (view.tab === 'processes')
		showProcesses(live);
	else if (view.tab === 'threads')
		showThreads(live);
	else
		showTasks(live);
}

function take(live) {
	const isNew = !evprof.live || evprof.live.number !== live.number;
	evprof.live = live;
	takeHistory(view.pid, live.history);
	if (isNew)
		takePast(live);
	draw(live);
	evprof.refreshes++;
	evprof.ready = true;
	silent = 0;
	if (live.age_ms > 3 * live.interval_ms + 2000)
		setState('bad', `no refresh for ${duration(live.age_ms * 1e6)}: a collector does not answer`);
	else
		setState(view.paused ? 'wait' : 'good', `${view.paused ? 'stopped at' : 'live,'} ${clock(live.at_ms)}`);
}

/* Asks now. An answer to an older question is dropped. */
async function ask() {
	clearTimeout(timer);
	if (asking)
		asking.abort();
	const own = asking = new AbortController();
	const late = setTimeout(() => own.abort(), Math.max(ANSWER_MS, evprof.live ? 3 * evprof.live.interval_ms : 0));
	try {
		const answer = await fetch(address(), {signal: own.signal});
		if (!answer.ok)
			throw new Error(await answer.text());
		const live = await answer.json();
		if (own === asking)
			take(live);
	} catch (error) {
		if (own !== asking)
			return;
		setState('bad', ++silent > 1 ? 'evprof serve does not answer: has it ended?' : 'no answer');
	} finally {
		clearTimeout(late);
	}
	plan();
}

function plan() {
	clearTimeout(timer);
	if (!view.paused)
		timer = setTimeout(ask, document.hidden ? HIDDEN_MS : silent ? 2000 : evprof.live.interval_ms);
}

/* ---- what the user does ------------------------------------------------------------------------------------------ */

function showTab(name) {
	view.tab = name;
	for (const tab of TABS) {
		const button = byId(`tab_${tab}`);
		button.setAttribute('aria-selected', String(tab === name));
		button.tabIndex = tab === name ? 0 : -1;
		byId(`panel_${tab}`).hidden = tab !== name;
	}
	byId('search').hidden = name !== 'functions';
	ask();
}

function setProcess(pid) {
	view.pid = pid;
	ask();
}

function setPaused(paused) {
	view.paused = paused;
	byId('pause').setAttribute('aria-pressed', String(paused));
	setText(byId('pause'), paused ? 'Go on' : 'Pause');
	ask();
}

function setFilter(text) {
	view.filter = text;
	byId('filter').value = text;
	ask();
}

function goBack() {
	if (view.focus !== null)
		lookAway();
	else if (view.filter)
		setFilter('');
	else if (view.pid)
		setProcess(0);
}

const KEYS = {
	1: () => showTab('functions'), 2: () => showTab('processes'), 3: () => showTab('threads'), 4: () => showTab('tasks'),
	o: () => sortBy('own'), t: () => sortBy('total'), c: () => sortBy('calls'), a: () => sortBy('allocations'), b: () => sortBy('bytes'),
	'/': () => { showTab('functions'); byId('filter').focus(); }, ' ': () => setPaused(!view.paused), '?': () => byId('help').showModal(),
};

document.addEventListener('keydown', (event) => {
	const types = event.target.matches('input, select');
	if (event.ctrlKey || event.metaKey || event.altKey || byId('help').open)
		return;
	if (event.key === 'Escape') {
		if (types)
			event.target.blur();
		goBack();
	} else if (!types && KEYS[event.key] && !(event.key === ' ' && event.target.matches('button'))) {
		event.preventDefault();
		KEYS[event.key]();
	}
});

for (const [i, tab] of TABS.entries()) {
	const button = byId(`tab_${tab}`);
	button.addEventListener('click', () => showTab(tab));
	button.addEventListener('keydown', (event) => {
		const step = {ArrowRight: 1, ArrowLeft: TABS.length - 1}[event.key];
		if (step) {
			const next = TABS[(i + step) % TABS.length];
			showTab(next);
			byId(`tab_${next}`).focus();
		}
	});
}
byId('filter').addEventListener('input', (event) => setFilter(event.target.value));
byId('search').addEventListener('submit', (event) => event.preventDefault());
byId('process').addEventListener('change', (event) => setProcess(Number(event.target.value)));
byId('range').addEventListener('change', (event) => { view.rangeS = Number(event.target.value); drawCharts(); });
byId('last').addEventListener('change', () => evprof.live && showProcesses(evprof.live));
byId('pause').addEventListener('click', () => setPaused(!view.paused));
byId('help_open').addEventListener('click', () => byId('help').showModal());
document.addEventListener('visibilitychange', () => !view.paused && !document.hidden && ask());
ask();

/* ---- sites: what was alive at a moment, by line, and how it grew in a stretch ---------------------------------------- */

/*
 * evprof writes what each site has at some hundred moments (tools/html/sites.h): a click on the curve of a heap shows the
 * moment nearest to it. A stretch shows what each site has at its end more than at its beginning.
 */
const KIND_NAMES = ['program', 'imports', 'caches', 'interned', 'interpreter'];
const MEMORY_KINDS = KIND_NAMES.length;
const sites = {heap: null, time: null, blocks: new Map(), numbers: null, rows: [], turn: 0};

/* The columns of a block, which several processes share. */
function siteBlock(block) {
	if (!sites.blocks.has(block))
		sites.blocks.set(block, unpack(block).then((columns) => columns.map(numbers)));
	return sites.blocks.get(block);
}

/* Sums of signed differences. */
function summed(column, from, size) {
	const values = new Float64Array(size);
	for (let i = 0, value = 0; i < size; i++)
		values[i] = value += signed(column[from + i]);
	return values;
}

/* The moments of a heap and its sites, with the bytes of each at each moment. */
async function loadSites(heap) {
	if (heap.list)
		return heap.list;
	const {block, moment: from, moments, row, rows, value} = heap.sites;
	const [times, fn, kind, values] = await siteBlock(block);
	sites.numbers ||= numbers((await unpack(meta.memory + 2))[0]);
	const list = [];
	for (let i = 0; i < rows; i++)
		list.push({f: fn[row + i] ? sites.numbers[fn[row + i] - 1] : -1, kind: kind[row + i] % MEMORY_KINDS, rest: kind[row + i] >= MEMORY_KINDS,
			bytes: summed(values, value + i * moments, moments)});
	heap.list = {times: summed(times, from, moments), list};
	return heap.list;
}

function nearestMoment(times, time) {
	let best = 0;
	for (let i = 1; i < times.length; i++)
		if (Math.abs(times[i] - time) < Math.abs(times[best] - time))
			best = i;
	return best;
}

function siteName({f, kind, rest}) {
	if (rest)
		return `(other lines: ${KIND_NAMES[kind]})`;
	return f < 0 ? '(no Python function)' : functionName(f);
}

/* The rows that are shown, the most first: those with something at the moment, or with a change in the stretch. */
async function pickSites(heap) {
	const {times, list} = await loadSites(heap);
	const {stretch} = selection;
	const hide = byId('hide_imports').checked;
	const at = nearestMoment(times, stretch ? stretch.to : sites.time);
	const before = stretch ? nearestMoment(times, stretch.from) : -1;
	const rows = list.filter(({kind}) => !hide || !kind)
		.map((site) => ({...site, now: site.bytes[at], grown: before < 0 ? 0 : site.bytes[at] - site.bytes[before]}))
		.filter(({now, grown}) => now || grown);
	const size = before < 0 ? ({now}) => now : ({grown}) => grown;
	rows.sort((a, b) => size(b) - size(a) || b.now - a.now);
	return {rows, at: times[at], before: before < 0 ? null : times[before], moments: times.length};
}

const grownText = (bytes) => (bytes < 0 ? `−${bytesText(-bytes)}` : `+${bytesText(bytes)}`);

function siteRow(row, most, stretch) {
	const share = Math.max(0, (100 * (stretch ? row.grown : row.now)) / (most || 1)).toFixed(2);
	const place = row.f < 0 ? '' : [functionPlace(row.f), 'C', functionFile(row.f)][functions.native[row.f]];
	return element('tr', row.f < 0 ? {} : {'data-f': row.f}, ...(stretch ? [element('td', {class: 'share', style: `--share:${share}%`}, grownText(row.grown))] : []),
		element('td', stretch ? {} : {class: 'share', style: `--share:${share}%`}, bytesText(row.now)), element('td', {}, KIND_NAMES[row.kind]),
		element('td', {}, row.f < 0 ? '' : element('span', {class: 'swatch', style: `background:${cssColour(ownWord(row.f))}`}),
			shorten(siteName(row), 300), element('small', {}, shorten(place, 400))));
}

function sitesText({rows, at, before, moments}, heap) {
	const sum = (key) => rows.reduce((all, row) => all + row[key], 0);
	const whose = heaps.length > 1 ? `${processName(heap.process)}: ` : '';
	const nearest = `of ${moments} moments that the page has`;
	if (before === null)
		return `${whose}${bytesText(sum('now'))} alive at ${moment(at)}, the nearest ${nearest}; click the curve for another`;
	return `${whose}${grownText(sum('grown'))} from ${moment(before)} to ${moment(at)}, the nearest ${nearest}: alive at the end of it, less what was at its beginning`;
}

async function fillSites() {
	if (!memory || byId('panel_sites').hidden)
		return;
	const turn = ++sites.turn;
	const {heap} = sites;
	const picked = await pickSites(heap);
	if (turn !== sites.turn)
		return;
	const stretch = picked.before !== null;
	const most = picked.rows.reduce((all, row) => all + Math.max(0, stretch ? row.grown : row.now), 0);
	sites.rows = picked.rows;
	byId('sites_text').textContent = sitesText(picked, heap);
	byId('sites_columns').replaceChildren(...[...(stretch ? ['grown'] : []), 'alive', 'whose', 'line'].map((title) => element('th', {scope: 'col'}, title)));
	byId('sites_rows').replaceChildren(...picked.rows.map((row) => siteRow(row, most, stretch)));
	draw();
}

/* A click on a curve. */
function showMoment(heap, time) {
	sites.heap = heap;
	sites.time = time;
	if (selection.stretch)
		clearStretch();
	selectTab('sites');
}

function listenSites() {
	byId('tab_sites').hidden = !memory || !heaps.length;
	[sites.heap] = heaps;
	sites.time = sites.heap ? sites.heap.peakTime ?? sites.heap.end ?? meta.to : null;
	byId('hide_imports').addEventListener('change', fillSites);
	byId('sites_rows').addEventListener('click', (event) => {
		const row = event.target.closest('tr[data-f]');
		if (row)
			selectFunction(Number(row.dataset.f));
	});
}


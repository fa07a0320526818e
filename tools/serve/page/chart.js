/* ---- charts ------------------------------------------------------------------------------------------------------ */

/* Members of a sample of the history, in the server's order. */
const [NUMBER, AT_MS, STRETCH, EVENTS, CALLS, ALLOCATIONS, BYTES, LOST, CPU, RSS] = Array(10).keys();
const SAMPLES_KEPT = 600;
const WIDTH = 300, HEIGHT = 56;

const perSecond = (member) => (sample) => (sample[STRETCH] ? sample[member] * 1e9 / sample[STRETCH] : null);
const CHARTS = [
	{key: 'events', title: 'events/s', value: perSecond(EVENTS), text: short},
	{key: 'calls', title: 'calls/s', value: perSecond(CALLS), text: short},
	{key: 'allocations', title: 'allocations/s', value: perSecond(ALLOCATIONS), text: short},
	{key: 'cpu', title: 'CPU', value: (sample) => (sample[STRETCH] && sample[CPU] !== null ? sample[CPU] / sample[STRETCH] : null), text: percent, least: 0.1},
	{key: 'rss', title: 'memory', value: (sample) => sample[RSS], text: bytesText, least: 1 << 20},
	{key: 'lost', title: 'lost events/s', value: perSecond(LOST), text: short, bad: true},
];

/* Samples of view.pid, oldest first. */
const recent = {pid: 0, samples: []};

function svg(tag, attributes, ...children) {
	const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
	for (const [name, value] of Object.entries(attributes))
		made.setAttribute(name, value);
	made.append(...children);
	return made;
}

function takeHistory(pid, samples) {
	if (recent.pid !== pid)
		recent.samples = [];
	recent.pid = pid;
	const last = newestSample();
	recent.samples.push(...samples.filter((sample) => sample[NUMBER] > last));
	recent.samples.splice(0, recent.samples.length - SAMPLES_KEPT);
}

const newestSample = () => (recent.samples.length ? recent.samples[recent.samples.length - 1][NUMBER] : 0);

function makeChart(chart) {
	chart.area = svg('path', {class: 'area'});
	chart.curve = svg('path', {class: 'curve'});
	chart.cursor = svg('line', {class: 'cursor', y1: 0, y2: HEIGHT, visibility: 'hidden'});
	chart.value_text = element('b', {}, NONE);
	chart.most_text = element('span', {class: 'most'}, '');
	chart.picture = svg('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img'}, chart.area, chart.curve, chart.cursor);
	chart.picture.addEventListener('pointermove', (event) => {
		const box = chart.picture.getBoundingClientRect();
		hover((event.clientX - box.left) / box.width);
	});
	chart.picture.addEventListener('pointerleave', () => hover(null));
	chart.box = element('figure', {id: `chart_${chart.key}`, class: chart.bad ? 'bad' : null},
		element('figcaption', {}, element('span', {}, chart.title), chart.value_text), chart.picture, chart.most_text);
	return chart.box;
}

/* Round numbers above the values, so that the scale does not jump. */
function scaleFor(most) {
	const power = 10 ** Math.floor(Math.log10(most));
	return [1, 1.5, 2, 3, 4, 5, 7.5, 10].find((step) => step * power >= most) * power;
}

function drawChart(chart, shown, from, to) {
	const points = shown.map((sample) => [(sample[AT_MS] - from) / (to - from) * WIDTH, chart.value(sample)]);
	const values = points.map(([, value]) => value).filter((value) => value !== null);
	const most = Math.max(chart.least || 1, ...values);
	const scale = scaleFor(most * 1.05);
	let path = '', area = '', start = null;
	const close = (x) => (start === null ? '' : `L${x} ${HEIGHT}L${start} ${HEIGHT}Z`);
	let before = null;
	for (const [x, value] of points) {
		if (value === null) {
			area += before === null ? '' : close(before);
			start = before = null;
			continue;
		}
		const at = `${x.toFixed(1)} ${(HEIGHT - value / scale * (HEIGHT - 2) - 1).toFixed(1)}`;
		path += (start === null ? 'M' : 'L') + at;
		area += (start === null ? 'M' : 'L') + at;
		start = start === null ? x.toFixed(1) : start;
		before = x.toFixed(1);
	}
	chart.curve.setAttribute('d', path);
	chart.area.setAttribute('d', area + (before === null ? '' : close(before)));
	setText(chart.most_text, values.length ? `max ${chart.text(Math.max(...values))}` : '');
	chart.box.classList.toggle('quiet', Boolean(chart.bad) && !values.some((value) => value > 0));
}

/* The newest value, or that under the pointer. */
function showValues(sample) {
	for (const chart of CHARTS) {
		const value = sample ? chart.value(sample) : null;
		setText(chart.value_text, orNone(value, chart.text));
		chart.picture.setAttribute('aria-label', `${chart.title}: ${orNone(value, chart.text)} now, ${chart.most_text.textContent}`);
	}
}

/* As much as there is, but half a minute at least. */
function shownRange() {
	if (!recent.samples.length)
		return [0, 1];
	const to = recent.samples[recent.samples.length - 1][AT_MS];
	return [Math.max(to - view.rangeS * 1000, Math.min(recent.samples[0][AT_MS], to - 30000)), to];
}

let hovered = null;

function hover(share) {
	hovered = share;
	const [from, to] = shownRange();
	const wanted = share === null ? to : from + share * (to - from);
	let nearest = null;
	for (const sample of recent.samples)
		if (!nearest || Math.abs(sample[AT_MS] - wanted) < Math.abs(nearest[AT_MS] - wanted))
			nearest = sample;
	for (const chart of CHARTS) {
		chart.cursor.setAttribute('visibility', share === null || !nearest ? 'hidden' : 'visible');
		if (share !== null && nearest) {
			const x = (nearest[AT_MS] - from) / (to - from) * WIDTH;
			chart.cursor.setAttribute('x1', x);
			chart.cursor.setAttribute('x2', x);
		}
	}
	showValues(nearest);
	byId('charts').title = share === null || !nearest ? '' : clock(nearest[AT_MS]);
}

function drawCharts() {
	const [from, to] = shownRange();
	const shown = recent.samples.filter((sample) => sample[AT_MS] >= from);
	for (const chart of CHARTS)
		drawChart(chart, shown, from, to);
	hover(hovered);
}

byId('charts').append(...CHARTS.map(makeChart));

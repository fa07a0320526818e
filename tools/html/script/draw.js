/* --- drawing --- */

function draw() {
	if (drawAsked)
		return;
	drawAsked = true;
	requestAnimationFrame(() => {
		drawAsked = false;
		drawNow();
	});
}

/* Sets a canvas to the size it has on the screen. Returns whether there is anything to draw on. */
function fit(canvas, width, height) {
	const {element: target, context} = canvas;
	const ratio = window.devicePixelRatio || 1;
	const w = Math.max(1, Math.round(width * ratio));
	const h = Math.max(1, Math.round(height * ratio));
	if (target.width !== w || target.height !== h) {
		target.width = w;
		target.height = h;
		target.style.height = `${height}px`;
	}
	canvas.width = width;
	canvas.height = height;
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.fillStyle = palette.back;
	context.fillRect(0, 0, width, height);
	context.font = font;
	context.textBaseline = 'middle';
	return width > 1 && height > 1;
}

function drawNow() {
	cache.drawing++;
	drawTracks();
	drawOverview();
	drawRuler();
}

function drawOverview() {
	const canvas = canvases.overview;
	const {context} = canvas;
	const width = canvas.element.clientWidth;
	if (!fit(canvas, width, 33))
		return;
	const most = activity.reduce((a, b) => Math.max(a, b), 1);
	context.fillStyle = palette.curve;
	context.beginPath();
	context.moveTo(0, 33);
	for (let x = 0; x < width; x++) {
		const first = Math.floor((x / width) * activity.length);
		const last = Math.max(first + 1, Math.floor(((x + 1) / width) * activity.length));
		let value = 0;
		for (let i = first; i < last; i++)
			value = Math.max(value, activity[i]);
		context.lineTo(x + 0.5, 32 - 28 * Math.sqrt(value / most));
	}
	context.lineTo(width, 33);
	context.fill();
	const [a, b] = [view.from, view.to].map((ns) => ((ns - meta.from) / SPAN) * width);
	context.globalAlpha = 0.72;
	context.fillStyle = palette.back;
	context.fillRect(0, 0, a, 33);
	context.fillRect(b, 0, width - b, 33);
	context.globalAlpha = 1;
	context.strokeStyle = palette.accent;
	context.lineWidth = 1.5;
	context.strokeRect(Math.max(a, 0) + 0.75, 1, Math.max(Math.min(b, width) - Math.max(a, 0) - 1.5, 2), 31);
	if (selection.stretch) {
		const [c, d] = [selection.stretch.from, selection.stretch.to].map((ns) => ((ns - meta.from) / SPAN) * width);
		context.fillStyle = palette.found;
		context.fillRect(c, 29, Math.max(d - c, 2), 4);
	}
}

/* A step of 1, 2 or 5 times a power of ten with marks at least this many pixels apart. */
function rulerStep(pixels) {
	const least = pixels * pixelNs();
	const power = 10 ** Math.floor(Math.log10(least));
	return [1, 2, 5, 10].map((k) => k * power).find((step) => step >= least);
}

function rulerUnit(step) {
	return [[1e9, 's', Infinity], [1e6, 'ms', 1e9], [1e3, 'µs', 1e6], [1, 'ns', 1e3]].find(([size]) => step >= size * 0.999) || [1, 'ns', 1e3];
}

function drawRuler() {
	const canvas = canvases.ruler;
	const {context} = canvas;
	if (!fit(canvas, canvas.element.clientWidth, 23))
		return;
	const step = Math.max(rulerStep(90), 1);
	let [size, unit, above] = rulerUnit(step);
	let base = 0;
	/* 3.992 s rather than 3,992 ms; where that needs too many digits, what is common to all stands at the left. */
	if (view.to >= above && (above === 1e9 || view.to < above * 1000))
		[size, unit] = rulerUnit(above);
	else if (view.to >= above)
		base = Math.floor(Math.max(view.from, 0) / above) * above;
	byId('base').textContent = base ? `${moment(base).replace(/(\.000)?(\u2009000)* s$/, ' s')} +` : '';
	context.fillStyle = palette.faint;
	context.strokeStyle = palette.line;
	context.beginPath();
	for (let k = Math.ceil(view.from / step); k * step <= view.to; k++) {
		const x = Math.round(xOf(k * step)) + 0.5;
		const label = (k * step - base) / size || 0; /* never -0 */
		context.moveTo(x, 15);
		context.lineTo(x, 23);
		context.fillText(`${count(Math.round(label * 1000) / 1000)} ${unit}`, x + 4, 12);
	}
	context.stroke();
	drawStretch(context, 23);
}

/* What is not selected is dimmed. */
function drawStretch(context, height) {
	if (!selection.stretch)
		return;
	const a = Math.round(xOf(selection.stretch.from));
	const b = Math.round(xOf(selection.stretch.to));
	context.fillStyle = palette.back;
	context.globalAlpha = 0.65;
	context.fillRect(0, 0, a, height);
	context.fillRect(b, 0, view.width - b, height);
	context.globalAlpha = 1;
	context.fillStyle = palette.found;
	context.fillRect(a - 2, 0, 2, height);
	context.fillRect(b, 0, 2, height);
}


/* ---- colours ----------------------------------------------------------------------------------------------------- */

const dark = matchMedia('(prefers-color-scheme: dark)');
const palette = {};

/* OKLCH as 0xBBGGRR: colours of equal lightness, so that the text on them can be read on each. */
function oklch(lightness, chroma, hue) {
	const a = chroma * Math.cos(hue * Math.PI / 180);
	const b = chroma * Math.sin(hue * Math.PI / 180);
	const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
	const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
	const s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3;
	const linear = [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
		-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
		-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s];
	return linear.reduce((word, value, i) => {
		const clipped = Math.min(Math.max(value, 0), 1);
		const part = clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055;
		return word | Math.round(part * 255) << (8 * i);
	}, 0);
}

const cssColour = (word) => `rgb(${word & 255} ${word >> 8 & 255} ${word >> 16 & 255})`;

function hash(text) {
	let value = 2166136261;
	for (let i = 0; i < text.length; i++)
		value = Math.imul(value ^ text.charCodeAt(i), 16777619);
	return (value ^ value >>> 15) >>> 0;
}

/* A hue for each file, the most expensive files first, so that what is seen most differs most. */
function fileHues() {
	const own = new Map();
	for (let f = 0; f < functions.count; f++)
		if (!functions.native[f])
			own.set(functions.file[f], (own.get(functions.file[f]) || 0) + functions.own[f]);
	const hues = new Map();
	[...own].sort((a, b) => b[1] - a[1]).forEach(([file], i) => hues.set(file, (245 + i * 137.508) % 360));
	return hues;
}

function makePalette() {
	const style = getComputedStyle(document.documentElement);
	for (const name of ['back', 'raised', 'line', 'text', 'faint', 'accent', 'found', 'bad', 'curve', 'bar'])
		palette[name] = style.getPropertyValue(`--${name}`).trim();
	palette.foundWord = dark.matches ? oklch(0.5, 0.115, 75) : oklch(0.83, 0.165, 80);
	palette.otherWord = dark.matches ? oklch(0.3, 0.005, 250) : oklch(0.91, 0.005, 250);
	palette.hues = fileHues();
	palette.words = new Uint32Array(functions.count); /* 0: not asked for yet */
}

function makeWord(f) {
	const mixed = hash(functionName(f));
	const shade = (mixed % 5 - 2) * 0.017;
	const native = functions.native[f];
	const library = native === NATIVE_LIBRARY;
	const hue = library ? hash(functionFile(f)) % 360 : native ? 260 : palette.hues.get(functions.file[f]) + (mixed >> 8) % 5 * 8 - 16;
	if (dark.matches)
		return oklch((native ? 0.38 : 0.45) + shade, library ? 0.035 : native ? 0.012 : 0.085, hue);
	return oklch((native ? 0.88 : 0.84) + shade, library ? 0.03 : native ? 0.008 : 0.08, hue);
}

const ownWord = (f) => (palette.words[f] ||= makeWord(f));

function functionWord(f) {
	if (!functions.match)
		return ownWord(f);
	return functions.match[f] ? palette.foundWord : palette.otherWord;
}


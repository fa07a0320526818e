/*
 * Names are drawn once into a canvas of their own and copied from there: shaping text is what would make zooming slow. A
 * name that is longer than its slot is drawn as text where there is more room than that.
 */
const SLOT_WIDTH = 240;
const SLOT_HEIGHT = 18;
const SLOT_COLUMNS = 4;
const SLOT_ROWS = 160;
const atlas = {canvas: document.createElement('canvas'), drawing: 0, slots: new Map(), owners: [], next: 0, ratio: 0, ellipsis: 0, letters: new Map()};
atlas.context = atlas.canvas.getContext('2d');

function clearAtlas() {
	const ratio = window.devicePixelRatio || 1;
	atlas.canvas.width = SLOT_WIDTH * SLOT_COLUMNS * ratio;
	atlas.canvas.height = SLOT_HEIGHT * SLOT_ROWS * ratio;
	atlas.ratio = ratio;
	atlas.slots.clear();
	atlas.owners = [];
	atlas.letters.clear();
	atlas.next = 0;
	const {context} = atlas;
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.font = font;
	context.textBaseline = 'middle';
	context.fillStyle = palette.text;
	atlas.ellipsis = context.measureText('…').width;
}

function letterWidth(letter) {
	let width = atlas.letters.get(letter);
	if (width === undefined) {
		width = atlas.context.measureText(letter).width;
		atlas.letters.set(letter, width);
	}
	return width;
}

/* About where each letter ends, until the slot is full: kerning is not in it. */
function letterEnds(letters) {
	const ends = [];
	let at = 0;
	for (const letter of letters) {
		at += letterWidth(letter);
		if (at > SLOT_WIDTH)
			break;
		ends.push(at);
	}
	return ends;
}

/* The width of the first letters of a slot's name, exactly: a cut at any other place shows half a letter. */
function prefixWidth(slot, count) {
	slot.prefixes[count] ??= atlas.context.measureText(slot.letters.slice(0, count).join('')).width;
	return slot.prefixes[count];
}

/* A text that is cut, with an ellipsis, where there is no room for it; for the few that are in no slot. */
function cutText(context, text, room) {
	if (context.measureText(text).width <= room)
		return text;
	const letters = [...text];
	let fits = 0, over = letters.length;
	while (over - fits > 1) {
		const half = (fits + over) >> 1;
		if (context.measureText(`${letters.slice(0, half).join('')}…`).width <= room)
			fits = half;
		else
			over = half;
	}
	return fits < 2 ? '' : `${letters.slice(0, fits).join('').trimEnd()}…`;
}

/* The slot with a function's name; null if those of this picture fill all. */
function labelSlot(f, drawing) {
	let slot = atlas.slots.get(f);
	if (slot) {
		slot.drawing = drawing;
		return slot;
	}
	const number = atlas.next % (SLOT_COLUMNS * SLOT_ROWS);
	const owner = atlas.owners[number];
	if (owner !== undefined && atlas.slots.get(owner).drawing === drawing)
		return null;
	atlas.slots.delete(owner);
	atlas.owners[number] = f;
	atlas.next++;
	const name = shorten(functionName(f), 200);
	const letters = [...name];
	slot = {x: (number % SLOT_COLUMNS) * SLOT_WIDTH, y: Math.floor(number / SLOT_COLUMNS) * SLOT_HEIGHT, letters, ends: letterEnds(letters),
		prefixes: [], width: atlas.context.measureText(name).width, drawing};
	atlas.slots.set(f, slot);
	atlas.context.save();
	atlas.context.beginPath();
	atlas.context.rect(slot.x, slot.y, SLOT_WIDTH, SLOT_HEIGHT);
	atlas.context.clip();
	atlas.context.clearRect(slot.x, slot.y, SLOT_WIDTH, SLOT_HEIGHT);
	atlas.context.fillText(name, slot.x, slot.y + SLOT_HEIGHT / 2 + 0.5);
	atlas.context.restore();
	return slot;
}

function copyLabel(context, {a, b, f, y}, slot) {
	const {ratio} = atlas;
	const room = b - a - 8;
	const left = Math.round((a + 4) * ratio) / ratio;
	let width = Math.min(slot.width + 1, SLOT_WIDTH);
	if (slot.width > room) {
		let letters = 0;
		while (letters < slot.ends.length && slot.ends[letters] + atlas.ellipsis <= room)
			letters++;
		if (letters < 2)
			return;
		width = Math.min(Math.round(prefixWidth(slot, letters) * ratio) / ratio, SLOT_WIDTH);
		context.fillText('…', left + width, y + SLOT_HEIGHT / 2 + 0.5);
	} else if (slot.width > SLOT_WIDTH) {
		context.fillText(shorten(functionName(f), 200), a + 4, y + SLOT_HEIGHT / 2 + 0.5);
		return;
	}
	context.drawImage(atlas.canvas, slot.x * ratio, slot.y * ratio, width * ratio, SLOT_HEIGHT * ratio, left, Math.round(y * ratio) / ratio, width,
		SLOT_HEIGHT);
}

function drawLabels(context, labels) {
	if (atlas.ratio !== (window.devicePixelRatio || 1))
		clearAtlas();
	const drawing = ++atlas.drawing;
	const slots = labels.map(({f}) => labelSlot(f, drawing));
	context.fillStyle = palette.text;
	labels.forEach((label, i) => {
		if (slots[i])
			copyLabel(context, label, slots[i]);
	});
}


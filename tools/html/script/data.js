/* ---- data -------------------------------------------------------------------------------------------------------- */

const meta = JSON.parse(byId('meta').textContent);
/* What stands for a call: of samples, a function that was seen in several, one after the other. */
const seen = meta.sampled ? ['call seen', 'calls seen'] : ['call', 'calls'];
const SPAN = Math.max(meta.to - meta.from, 1);

function base64(text) {
	if (Uint8Array.fromBase64)
		return Uint8Array.fromBase64(text);
	const characters = atob(text);
	const bytes = new Uint8Array(characters.length);
	for (let i = 0; i < bytes.length; i++)
		bytes[i] = characters.charCodeAt(i);
	return bytes;
}

/* The columns of a block, as bytes. */
let unpacked = 0;
async function unpack(number) {
	unpacked++;
	const packed = base64(byId(`b${number}`).textContent);
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
	const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
	const view = new DataView(bytes.buffer);
	const columns = [];
	for (let at = 0; at < bytes.length;) {
		const length = view.getUint32(at, true);
		columns.push(bytes.subarray(at + 4, at + 4 + length));
		at += 4 + length;
	}
	return columns;
}

/* The numbers of a column. */
function numbers(bytes) {
	let size = 0;
	for (let i = 0; i < bytes.length; i++)
		size += bytes[i] < 128;
	const values = new Float64Array(size);
	for (let i = 0, k = 0; k < size; k++) {
		let byte = bytes[i++];
		let value = byte & 127;
		for (let scale = 128; byte >= 128; scale *= 128) {
			byte = bytes[i++];
			value += (byte & 127) * scale;
		}
		values[k] = value;
	}
	return values;
}

const signed = (value) => (value % 2 ? -(value + 1) / 2 : value / 2);

/* Texts are decoded when they are asked for: a program of a million functions has three million. */
const texts = {ends: null, bytes: null, whole: null, known: [], decoder: new TextDecoder()};
async function loadTexts() {
	const [lengths, bytes] = await unpack(meta.texts);
	let at = 0;
	texts.ends = numbers(lengths).map((length) => (at += length));
	texts.bytes = bytes;
	/* Where each byte is a character, as nearly always, a text is a part of the whole. */
	const whole = bytes.length < 2 ** 28 ? texts.decoder.decode(bytes) : '';
	texts.whole = whole.length === bytes.length ? whole : null;
}

function textAt(i) {
	if (texts.known[i] === undefined) {
		const [from, to] = [i ? texts.ends[i - 1] : 0, texts.ends[i]];
		texts.known[i] = visible(texts.whole === null ? texts.decoder.decode(texts.bytes.subarray(from, to)) : texts.whole.slice(from, to));
	}
	return texts.known[i];
}

/* Functions: the table as evprof counted it, over the whole of what was exported. */
const functions = {count: 0};
async function loadFunctions() {
	const columns = (await unpack(meta.functions)).map(numbers);
	const names = ['display', 'name', 'file', 'line', 'native', 'calls', 'recursive', 'own', 'total', 'longest', 'longestStart', 'longestThread',
		'estimate'];
	names.forEach((name, i) => {
		functions[name] = columns[i];
	});
	functions.count = functions.line.length;
	findShortFiles();
	functions.match = null; /* Uint8Array while there is a search */
}

/* Files by the end of their path that no other has: app.py, but pkg/__init__.py. */
const shortFiles = new Map();
function findShortFiles() {
	const numbered = new Set(functions.file.filter((_, f) => !functions.native[f]));
	const files = [...numbered].map((i) => [textAt(i), textAt(i).split('/')]);
	let open = files;
	for (let parts = 1; open.length; parts++) {
		const seen = new Map();
		const end = ([, path]) => path.slice(-parts).join('/');
		for (const file of files)
			seen.set(end(file), (seen.get(end(file)) || 0) + 1);
		for (const file of open)
			shortFiles.set(file[0], end(file));
		open = open.filter((file) => seen.get(end(file)) > 1 && file[1].length > parts);
	}
}
const shortFile = (file) => shortFiles.get(file) || file;

/* Half of a program is called <module>: its file says which. */
function functionName(f) {
	const name = textAt(functions.display[f]) || '(no name)';
	return name === '<module>' ? `<module> ${shortFile(functionFile(f))}` : name;
}
const functionFile = (f) => textAt(functions.file[f]);
function functionPlace(f) {
	if (functions.native[f] === NATIVE_LIBRARY)
		return `native function · ${functionFile(f)}`;
	return functions.native[f] ? `C function · ${textAt(functions.name[f])}` : `${functionFile(f)}:${functions.line[f]}`;
}
/* As pstats prints it. */
function functionStandard(f) {
	const name = textAt(functions.name[f]);
	if (functions.native[f] === NATIVE_LIBRARY)
		return `${name} (${functionFile(f)})`;
	if (!functions.native[f])
		return `${functionFile(f)}:${functions.line[f]}(${name})`;
	return name.startsWith('<') && name.endsWith('>') ? `{${name.slice(1, -1)}}` : name;
}

function threadName(t) {
	const thread = meta.threads[t];
	return textAt(thread.name) || `thread ${thread.tid}`;
}
function processName(p) {
	const process = meta.processes[p];
	return `${textAt(process.program) || 'python'}  ${process.pid}`;
}


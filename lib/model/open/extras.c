/* Reads what files contain besides events: holes, machine samples, the recorder's notes, and calls
 * that never ended. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/priced.h"
#include "format/sample.h"
#include "format/tft_write.h"

#include "model/open/opening.h"

static int add_holes(struct tfh_run *run, uint32_t file, const char *data, size_t len)
{
	uint32_t process = run->file[file].process;
	struct tft_loss loss;

	for (; len >= sizeof(loss); data += sizeof(loss), len -= sizeof(loss)) {
		memcpy(&loss, data, sizeof(loss));
		if (tfh_room_for((void **)&run->hole, &run->cap_hole, run->n_hole,
				 sizeof(*run->hole)))
			return -ENOMEM;
		struct tfh_hole *h = &run->hole[run->n_hole++];
		h->process = process;
		h->t0 = tfh_run_ns(run, file, loss.t_first);
		h->t1 = tfh_run_ns(run, file, loss.t_last);
		h->count = loss.count;
	}
	return 0;
}

static uint64_t since(uint64_t now, uint64_t *before)
{
	uint64_t d = *before && now > *before && now != UINT64_MAX ? now - *before : 0;

	if (now != UINT64_MAX)
		*before = now;
	return d;
}

/* Reads a sample's entry about the process instead of a thread. */
static void add_process(struct tfh_model_proc *p, struct tfh_sample *s,
			const struct tft_sample_thread *t)
{
	if (t->tid == TFT_SAMPLE_FAULTS) {
		s->faults = since(t->run_ns, &p->sample_faults);
	} else if (t->tid == TFT_SAMPLE_SYSTEM) {
		s->system_s = (double)since(t->run_ns, &p->sample_system) / 1e9;
		s->fault_s = (double)t->delay_ns / 1e9;
	} else if (t->tid == TFT_SAMPLE_MEMORY && t->run_ns != UINT64_MAX) {
		s->resident_bytes = t->run_ns;
		s->page_bytes = t->delay_ns;
	} else if (t->tid == TFT_SAMPLE_IO_BYTES && t->run_ns != UINT64_MAX) {
		s->io_bytes = since(t->run_ns + t->delay_ns, &p->sample_io_bytes);
	} else if (t->tid == TFT_SAMPLE_IO_CALLS && t->run_ns != UINT64_MAX) {
		s->io_calls = since(t->run_ns + t->delay_ns, &p->sample_io_calls);
	}
}

/* Threads that make the first calls drive the job, as a rule: the lowest indexes are kept. */
static void add_thread(struct tfh_sample *s, const struct tft_sample_thread *t)
{
	uint32_t at = s->threads;

	if (t->run_ns == UINT64_MAX || t->delay_ns == UINT64_MAX)
		return;
	if (at == TFH_SAMPLE_THREADS) {
		at = 0;
		for (uint32_t i = 1; i < TFH_SAMPLE_THREADS; i++)
			at = s->thread[i].thread > s->thread[at].thread ? i : at;
		if (s->thread[at].thread < t->thread)
			return;
	} else {
		s->threads++;
	}
	s->thread[at] = (struct tfh_thread_times){t->thread, (double)t->run_ns / 1e9,
						  (double)t->delay_ns / 1e9};
}

/* The newest times of a thread. */
static void take_times(struct tfh_run *run, const struct tfh_model_proc *p,
		       const struct tft_sample_thread *t)
{
	uint32_t at = tfh_thread_at(p, t->thread);

	if (at == UINT32_MAX || t->run_ns == UINT64_MAX || t->delay_ns == UINT64_MAX)
		return;
	run->thread[at].timed = true;
	run->thread[at].run_s = (double)t->run_ns / 1e9;
	run->thread[at].delay_s = (double)t->delay_ns / 1e9;
}

/* An entry of page faults or switches; others are not a thread's. */
static void take_counts(struct tfh_run *run, const struct tfh_model_proc *p,
			const struct tft_sample_thread *t)
{
	uint32_t what = t->tid & ((1u << TFT_SAMPLE_INDEX_SHIFT) - 1);
	uint32_t at = tfh_thread_at(p, t->tid >> TFT_SAMPLE_INDEX_SHIFT);
	struct tfh_thread_info *of = &run->thread[at];

	if (at == UINT32_MAX || t->run_ns == UINT64_MAX || t->delay_ns == UINT64_MAX)
		return;
	if (what == TFT_SAMPLE_THREAD_FAULTS) {
		of->faults_known = true;
		of->minor_faults = t->run_ns;
		of->major_faults = t->delay_ns;
	} else if (what == TFT_SAMPLE_THREAD_SWITCHES) {
		of->switches_known = true;
		of->voluntary_switches = t->run_ns;
		of->forced_switches = t->delay_ns;
	}
}

/* Reads a sample's entry: of the process, or of a thread, whose delay is added to *delay. */
static int add_entry(struct tfh_run *run, struct tfh_model_proc *p, struct tfh_sample *out,
		     const struct tft_sample_thread *t, uint64_t *delay)
{
	if (t->thread == TFT_SAMPLE_NO_THREAD) {
		add_process(p, out, t);
		take_counts(run, p, t);
		return tfh_run_add_reading(p, out->t, t) ? -ENOMEM : 0;
	}
	take_times(run, p, t);
	add_thread(out, t);
	*delay += t->delay_ns != UINT64_MAX ? t->delay_ns : 0;
	return 0;
}

static int add_samples(struct tfh_run *run, uint32_t file, const char *data, size_t len)
{
	struct tfh_model_proc *p = &run->proc[run->file[file].process];
	struct tft_sample s;

	while (len >= sizeof(s)) {
		memcpy(&s, data, sizeof(s));
		data += sizeof(s);
		len -= sizeof(s);
		struct tfh_sample out = {.t = tfh_run_ns(run, file, s.ticks), .cpus = s.cpus};
		/* The files of a process come in order, so a sample that is not later is from a
		 * copy of a file. */
		bool again = p->n_sample && out.t <= p->sample[p->n_sample - 1].t;
		uint64_t delay = 0;
		for (uint32_t i = 0; i < s.threads; i++) {
			struct tft_sample_thread t;
			if (len < sizeof(t))
				return 0;
			memcpy(&t, data, sizeof(t));
			data += sizeof(t);
			len -= sizeof(t);
			if (!again && add_entry(run, p, &out, &t, &delay))
				return -ENOMEM;
		}
		if (again)
			continue;
		if (tfh_room_for((void **)&p->sample, &p->cap_sample, p->n_sample,
				 sizeof(*p->sample)))
			return -ENOMEM;
		out.cpu_s = (double)since(s.cpu_ns, &p->sample_cpu) / 1e9;
		out.flusher_s = (double)since(s.flusher_ns, &p->sample_flusher) / 1e9;
		out.run_delay_s = (double)since(delay, &p->sample_delay) / 1e9;
		out.write_bytes = since(s.write_bytes, &p->sample_write);
		p->sample[p->n_sample++] = out;
	}
	return 0;
}

static int add_unhooked(struct tfh_run *run, uint32_t file, const char *name, size_t n)
{
	(void)file;
	for (uint32_t i = 0; i < run->n_unhooked; i++)
		if (strlen(run->unhooked[i]) == n && !memcmp(run->unhooked[i], name, n))
			return 0;
	if (tfh_room_for((void **)&run->unhooked, &run->cap_unhooked, run->n_unhooked,
			 sizeof(*run->unhooked)))
		return -ENOMEM;
	const char *s = tfh_arena_strndup(&run->arena, name, n);
	if (!s)
		return -ENOMEM;
	run->unhooked[run->n_unhooked++] = s;
	return 0;
}

static uint64_t number(const char *text, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n && i < 18 && text[i] >= '0' && text[i] <= '9'; i++)
		v = v * 10 + (uint64_t)(text[i] - '0');
	return v;
}

/* The note of an imported trace: host, executable and the end of the last op. */
static int take_last(struct tfh_run *run, uint32_t file, const char *text, size_t n)
{
	struct tfh_process *p = &run->proc[run->file[file].process].pub;
	int64_t last = tfh_run_ns(run, file, number(text, n));

	if (last > p->last_ns)
		p->last_ns = last;
	return 0;
}

static int take_source(struct tfh_run *run, uint32_t file, const char *name, size_t n)
{
	char text[16];

	(void)file;
	snprintf(text, sizeof(text), "%.*s", (int)(n < sizeof(text) ? n : 0), name);
	enum tfh_source source = tfh_source_find(text);
	if (source != TFH_SRC_NONE)
		run->source = source;
	return 0;
}

/* Sums the count over a process' files. */
static int take_unnamed(struct tfh_run *run, uint32_t file, const char *text, size_t len)
{
	uint64_t n = number(text, len);
	struct tfh_process *p = &run->proc[run->file[file].process].pub;

	if (n > p->unnamed)
		p->unnamed = n;
	return 0;
}

static int take_no_python(struct tfh_run *run, uint32_t file, const char *why, size_t n)
{
	struct tfh_process *p = &run->proc[run->file[file].process].pub;

	p->no_python = tfh_arena_strndup(&run->arena, why, n);
	return p->no_python ? 0 : -ENOMEM;
}

static int take_torch(struct tfh_run *run, uint32_t file, const char *what, size_t n)
{
	struct tfh_process *p = &run->proc[run->file[file].process].pub;

	p->torch = tfh_arena_strndup(&run->arena, what, n);
	return p->torch ? 0 : -ENOMEM;
}

static int take_priced(struct tfh_run *run, uint32_t file, const char *text, size_t n)
{
	int row = tfh_priced_find(text, n);

	if (row >= 0)
		run->proc[run->file[file].process].pub.priced |= 1ull << row;
	return 0;
}

/* Takes NAME=VALUE. The last value counts. A row of base/priced.def with that name applies only as
 * long as its value does. */
static int take_setting(struct tfh_run *run, uint32_t file, const char *text, size_t n)
{
	struct tfh_process *p = &run->proc[run->file[file].process].pub;
	struct tfh_setting_now *all = (struct tfh_setting_now *)p->setting;
	char *name = tfh_arena_strndup(&run->arena, text, n), *value;
	uint32_t i = 0;

	if (!all)
		p->setting = all = tfh_arena_array(&run->arena, TFH_SETTINGS_MOST, sizeof(*all));
	if (!all || !name)
		return -ENOMEM;
	value = strchr(name, '=');
	if (!value)
		return 0;
	*value++ = '\0';
	while (i < p->n_setting && strcmp(all[i].name, name))
		i++;
	if (i == TFH_SETTINGS_MOST)
		return 0;
	p->n_setting += i == p->n_setting;
	all[i] = (struct tfh_setting_now){name, value};
	for (uint32_t k = 0; k < tfh_priced_count; k++)
		if (!strcmp(tfh_priced[k].variable, name))
			p->priced &= ~(1ull << k);
	return take_priced(run, file, text, n);
}

/* Processors, memory nodes and memory policy, separated by tabs. */
static int take_bound(struct tfh_run *run, uint32_t file, const char *text, size_t n)
{
	struct tfh_process *p = &run->proc[run->file[file].process].pub;
	char *line = tfh_arena_strndup(&run->arena, text, n), *rest;

	if (!line)
		return -ENOMEM;
	p->bound_cpus = strtok_r(line, "\t", &rest);
	p->bound_nodes = strtok_r(NULL, "\t", &rest);
	p->bound_policy = strtok_r(NULL, "\t", &rest);
	return 0;
}

/* Name, version and path, separated by tabs. A later entry for the same path replaces the earlier
 * one. */
static int take_software(struct tfh_run *run, uint32_t file, const char *text, size_t n)
{
	struct tfh_process *p = &run->proc[run->file[file].process].pub;
	struct tfh_software *all = (struct tfh_software *)p->software;
	char *line = tfh_arena_strndup(&run->arena, text, n), *rest;
	uint32_t i = 0;

	if (!all)
		p->software = all = tfh_arena_array(&run->arena, TFH_SOFTWARE_MOST, sizeof(*all));
	if (!all || !line)
		return -ENOMEM;
	struct tfh_software found = {strtok_r(line, "\t", &rest), strtok_r(NULL, "\t", &rest),
				     strtok_r(NULL, "\t", &rest)};
	while (found.path && i < p->n_software && strcmp(all[i].path, found.path))
		i++;
	if (!found.path || i == TFH_SOFTWARE_MOST)
		return 0;
	p->n_software += i == p->n_software;
	all[i] = found;
	return 0;
}

/* The next field of a line, which may be empty. */
static const char *next_field(char **rest)
{
	const char *field = *rest ? strsep(rest, "\t") : NULL;

	return field ? field : "";
}

static int take_device(struct tfh_run *run, uint32_t file, const char *text, size_t n)
{
	struct tfh_process *p = &run->proc[run->file[file].process].pub;
	struct tfh_device_at *all = (struct tfh_device_at *)p->device;
	char *rest = tfh_arena_strndup(&run->arena, text, n);
	uint32_t i = 0;

	if (!all)
		p->device = all = tfh_arena_array(&run->arena, TFH_DEVICES_AT_MOST, sizeof(*all));
	if (!all || !rest)
		return -ENOMEM;
	struct tfh_device_at at = {.ordinal = atoi(next_field(&rest))};
	at.bus = next_field(&rest);
	at.node = atoi(next_field(&rest));
	at.pcie = next_field(&rest);
	at.nic = next_field(&rest);
	at.links = atoi(next_field(&rest));
	next_field(&rest); /* what the links lead to */
	at.fabric = next_field(&rest);
	while (i < p->n_device && all[i].ordinal != at.ordinal)
		i++;
	if (i == TFH_DEVICES_AT_MOST)
		return 0;
	p->n_device += i == p->n_device;
	all[i] = at;
	return 0;
}

/* Reads lines of key=value. */
static int add_note(struct tfh_run *run, uint32_t file, const char *text, size_t len)
{
	static const struct {
		const char *key;
		int (*take)(struct tfh_run *run, uint32_t file, const char *text, size_t n);
	} notes[] = {{"unhooked=", add_unhooked},  {"source=", take_source},
		     {"last=", take_last},	   {"unnamed=", take_unnamed},
		     {"software=", take_software}, {"device=", take_device},
		     {"priced=", take_priced},	   {"setting=", take_setting},
		     {"bound=", take_bound},	   {"python.why=", take_no_python},
		     {"torch=", take_torch}};
	int rc = 0;

	while (len && !rc) {
		const char *eol = memchr(text, '\n', len);
		size_t n = eol ? (size_t)(eol - text) : len;
		for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]) && !rc; i++) {
			size_t k = strlen(notes[i].key);
			if (n > k && !memcmp(text, notes[i].key, k))
				rc = notes[i].take(run, file, text + k, n - k);
		}
		n += eol != NULL;
		text += n;
		len -= n;
	}
	return rc;
}

static int add_open_call(struct tfh_run *run, uint32_t file, const struct tfh_rec *rec)
{
	const struct tft_head *head = tft_head(run->file[file].reader);
	uint32_t process = run->file[file].process;
	struct tfh_model_proc *p = &run->proc[process];
	char detail[128] = "";

	if (rec->kind != TFT_OPEN || rec->fn >= head->fn_count)
		return 0;
	if (tfh_room_for((void **)&run->flight, &run->cap_flight, run->n_flight,
			 sizeof(*run->flight)))
		return -ENOMEM;
	const struct tfh_fn_info *fn = &head->fn[rec->fn];
	if (fn->family == TFH_FAM_COPY || fn->family == TFH_FAM_MEMSET)
		snprintf(detail, sizeof(detail), "%llu bytes", (unsigned long long)rec->w[0]);
	else if (fn->family == TFH_FAM_SYNC && rec->w[0])
		snprintf(detail, sizeof(detail), "handle 0x%llx", (unsigned long long)rec->w[0]);
	struct tfh_in_flight *f = &run->flight[run->n_flight++];
	f->fn = fn->name;
	f->handle = fn->family == TFH_FAM_SYNC ? rec->w[0] : 0;
	f->process = process;
	f->thread = tfh_thread_at(p, rec->ctx);
	int64_t until = tfh_run_ns(run, file, rec->t_end);
	if (until > p->pub.heard_ns)
		p->pub.heard_ns = until;
	f->begin_ns = tfh_run_ns(run, file, rec->t_begin);
	f->look_ns = 0;
	f->place = f->state = 0;
	f->open_s = (double)(until - f->begin_ns) / 1e9;
	f->detail = tfh_arena_strdup(&run->arena, detail);
	return f->detail ? 0 : -ENOMEM;
}

/* Reads the calls that were in flight when the process died, or are in flight now. Salvage writes
 * them as a series of their own. */
static int add_open_calls(struct tfh_run *run, uint32_t file, uint32_t chunk)
{
	struct tft_reader *r = run->file[file].reader;
	struct tft_events *events;
	const struct tft_run *runs;
	struct tfh_err err;
	uint32_t n;
	bool has = false;
	int rc = 0;

	if (tft_chunk_runs(r, chunk, &runs, &n, &err))
		return 0;
	for (uint32_t i = 0; i < n; i++)
		has |= runs[i].thread == TFT_THREAD_SALVAGE;
	if (!has || tft_events_open(r, chunk, &events, &err))
		return 0;
	for (uint32_t i = 0; i < tft_run_count(events) && !rc; i++) {
		struct tft_cursor c;
		struct tfh_rec rec;
		if (tft_run(events, i)->thread != TFT_THREAD_SALVAGE)
			continue;
		tft_cursor_init(&c, events, i);
		while (!rc && tft_next(&c, &rec))
			rc = add_open_call(run, file, &rec);
	}
	tft_events_close(events);
	return rc;
}

int tfh_run_read_notes(struct tfh_run *run, uint32_t file)
{
	struct tft_reader *r = run->file[file].reader;
	int rc = 0;

	for (uint32_t i = 0; i < tft_chunk_count(r) && !rc; i++) {
		uint32_t type = tft_chunk(r, i)->type;
		const void *data;
		size_t len;
		struct tfh_err err;
		if (type == TFT_EVNT) {
			rc = add_open_calls(run, file, i);
			continue;
		}
		if (type != TFT_LOSS && type != TFT_SAMP && type != TFT_NOTE)
			continue;
		if (tft_chunk_payload(r, i, &data, &len, &err))
			continue; /* damaged: the reader has counted it */
		rc = type == TFT_LOSS	? add_holes(run, file, data, len)
		     : type == TFT_SAMP ? add_samples(run, file, data, len)
					: add_note(run, file, data, len);
	}
	return rc;
}

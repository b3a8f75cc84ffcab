/* `tfhook info`: lists the contents of a recording. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/options.h"
#include "base/priced.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/digests.h"
#include "cli/files.h"
#include "format/journal_view.h"
#include "format/tft_read.h"
#include "model/model.h"
#include "model/ops/ops.h"
#include "report/format.h"

/* ---- run.json: shown unchanged, one value per line ---- */

/* Copies a JSON string without its quotes and escaped quotes; escapes of invisible characters stay.
 */
static void unquote(const char *json, char *out, size_t size)
{
	size_t n = 0;

	for (json += *json == '"'; *json && n + 1 < size; json++) {
		if (*json == '"')
			break;
		if (*json == '\\' && json[1] && strchr("\"\\/", json[1]))
			json++;
		out[n++] = *json;
	}
	out[n] = '\0';
}

static void print_variable(int length, const char *name, const char *value)
{
	char shown[8192], entry[8192 + 256], sentence[512];

	tfh_print(stdout, "  %.*s=%s", length, name,
		  tfh_fmt_cut(shown, sizeof(shown), value, sizeof(shown)));
	snprintf(entry, sizeof(entry), "%.*s=%s", length < 255 ? length : 255, name, value);
	if (tfh_option_check(entry, sentence, sizeof(sentence)))
		tfh_print(stdout, "   <- not valid, had no effect%s",
			  sentence + strcspn(sentence, ";"));
	if (tfh_option_unknown(entry)) {
		const char *near = tfh_option_suggest(entry);
		tfh_print(stdout, "   <- unknown to tfhook, had no effect%s%s%s",
			  near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	}
	tfh_put("\n", stdout);
}

/* The "env" object of run.json, written by tfhook with one member per line. */
static void print_environment(const char *dir)
{
	FILE *f = tfh_open_facts(dir, "run.json");
	char line[16384];
	bool inside = false;

	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		char *p = line + strspn(line, " \t");
		if (tfh_starts_with(p, "\"env\": {")) {
			tfh_put("environment\n", stdout);
			inside = true;
			continue;
		}
		if (inside && *p == '}')
			break;
		char *colon = inside && *p == '"' ? strstr(p, "\": ") : NULL;
		if (!colon)
			continue;
		char value[8192];
		unquote(colon + 3, value, sizeof(value));
		print_variable((int)(colon - p - 1), p + 1, value);
	}
	fclose(f);
}

/* ---- the run ---- */

static const char *yes(bool b)
{
	return b ? "yes" : "no";
}

static void print_command(const struct tfh_run *run)
{
	const char *const *argv;
	uint32_t n = tfh_run_command(run, &argv);

	tfh_put("command    ", stdout);
	for (uint32_t i = 0; i < n; i++) {
		char text[4096];
		tfh_fmt_cut(text, sizeof(text), argv[i], sizeof(text));
		tfh_print(stdout, strpbrk(text, " '\"") || !*text ? "%s\"%s\"" : "%s%s",
			  i ? " " : "", text);
	}
	tfh_put(n ? "\n" : "unknown\n", stdout);
}

static void print_end(const struct tfh_run *run)
{
	int code = 0;
	enum tfh_end end = tfh_run_end(run, &code);

	if (end == TFH_END_EXIT)
		tfh_print(stdout, "end        exit code %d\n", code);
	else if (end == TFH_END_SIGNAL)
		tfh_print(stdout, "end        signal %d (%s)\n", code,
			  sigdescr_np(code) ? sigdescr_np(code) : "unknown");
	else
		tfh_print(stdout, "end        %s\n",
			  tfh_end_name(end) ? tfh_end_name(end) : "unknown");
}

static void print_processes(const struct tfh_run *run)
{
	const struct tfh_process *p;
	uint32_t n = tfh_run_processes(run, &p);

	tfh_print(stdout, "\n%-9s %5s %-14s %10s %9s %9s %4s %4s %5s %s\n", "PROCESS", "rank",
		  "program", "events", "dropped", "time", "gpu", "tf", "clean", "host");
	for (uint32_t i = 0; i < n; i++) {
		char rank[16] = "-", name[64], host[256], events[TFH_TEXT], dropped[TFH_TEXT],
		     time[TFH_TEXT];
		if (p[i].rank >= 0)
			snprintf(rank, sizeof(rank), "%d", p[i].rank);
		tfh_fmt_cut(name, sizeof(name), p[i].exe ? tfh_file_of(p[i].exe) : "?", 14);
		tfh_print(stdout, "%-9u %5s %-14s %10s %9s %9s %4s %4s %5s %s\n", p[i].pid, rank,
			  name, tfh_fmt_count(events, p[i].events),
			  tfh_fmt_count(dropped, p[i].dropped),
			  tfh_fmt_time(time, (double)(p[i].last_ns - p[i].start_ns) * 1e-9),
			  yes(p[i].has_gpu), yes(p[i].has_tf),
			  p[i].live ? "runs" : yes(p[i].clean_end),
			  tfh_fmt_cut(host, sizeof(host), p[i].host ? p[i].host : "?", 64));
	}
}

/* The software that the processes ran with. */
static void print_software(const struct tfh_run *run)
{
	const struct tfh_process *p;
	uint32_t n = tfh_run_processes(run, &p);

	for (uint32_t i = 0; i < n; i++) {
		char path[4096];
		if (p[i].n_software || p[i].priced || p[i].torch)
			tfh_print(stdout, "\nSOFTWARE of process %u\n", p[i].pid);
		for (uint32_t k = 0; k < p[i].n_software; k++)
			tfh_print(stdout, "  %-14.64s %-12.64s %s\n", p[i].software[k].name,
				  p[i].software[k].version,
				  tfh_fmt_cut(path, sizeof(path), p[i].software[k].path,
					      sizeof(path)));
		if (p[i].torch)
			tfh_print(stdout, "  PyTorch's ranges: %s\n",
				  tfh_fmt_cut(path, sizeof(path), p[i].torch, 256));
		for (uint32_t k = 0; k < tfh_priced_count; k++)
			if (p[i].priced >> k & 1)
				tfh_print(stdout, "  %s=%s   <- %s\n", tfh_priced[k].variable,
					  tfh_priced[k].value, tfh_priced[k].sentence);
	}
}

static void print_spans(const struct tfh_gpu_info *g)
{
	double on = 0;
	char total[TFH_TEXT];
	bool whole = false;

	for (uint32_t i = 0; i < g->n_span; i++) {
		on += (double)(g->span[i].t1 - g->span[i].t0) * 1e-9;
		whole |= !g->span[i].nodes;
	}
	tfh_print(stdout, "  known for %s in %u part%s%s\n", tfh_fmt_time(total, on), g->n_span,
		  g->n_span == 1 ? "" : "s", whole ? "; of graphs only whole launches" : "");
	if (g->graphs && *g->graphs)
		tfh_print(stdout, "  taken in windows from some moment on: %s\n", g->graphs);
}

static void print_device_times(struct tfh_run *run)
{
	const struct tfh_process *p;
	uint32_t n = tfh_run_processes(run, &p);

	for (uint32_t i = 0; i < n; i++) {
		struct tfh_gpu_info g;
		char library[4096], ops[TFH_TEXT], lost[TFH_TEXT];
		tfh_run_gpu(run, i, &g);
		if (g.source == TFH_GPU_NONE && (!*g.why || !p[i].has_gpu))
			continue;
		tfh_print(stdout, "\nDEVICE TIMES of process %u\n", p[i].pid);
		if (g.source == TFH_GPU_NONE) {
			tfh_print(stdout, "  none: %s\n", g.why);
			continue;
		}
		tfh_print(stdout, "  %s kernels, copies and memsets, %s lost\n",
			  tfh_fmt_count(ops, g.ops), tfh_fmt_count(lost, g.dropped));
		print_spans(&g);
		if (*g.library)
			tfh_print(
				stdout, "  library: %s\n",
				tfh_fmt_cut(library, sizeof(library), g.library, sizeof(library)));
		if (g.overhead_ns)
			tfh_print(stdout,
				  "  CUPTI reports %s of its own work in the job's threads\n",
				  tfh_fmt_time(ops, (double)g.overhead_ns * 1e-9));
		if (g.source == TFH_GPU_CUPTI && !g.dependencies)
			tfh_put("  without the job's calls (the recorder was loaded by "
				"CUDA_INJECTION64_PATH only): tier B\n",
				stdout);
	}
}

static void print_unhooked(const struct tfh_run *run)
{
	const char *const *names;
	uint32_t n = tfh_run_unhooked(run, &names);

	if (!n)
		return;
	tfh_print(stdout,
		  "\nDRIVER FUNCTIONS THAT THE JOB LOOKED UP AND TFHOOK DOES NOT RECORD (%u)\n", n);
	for (uint32_t i = 0; i < n; i++) {
		char name[256];
		tfh_print(stdout, "  %s\n",
			  tfh_fmt_cut(name, sizeof(name), names[i], sizeof(name)));
	}
}

static void print_run(const struct tfh_run *run)
{
	time_t start = (time_t)(tfh_run_start_realtime_ns(run) / 1000000000);
	const char *name = tfh_run_host(run) ? tfh_run_host(run) : "";
	char when[64] = "unknown", wall[TFH_TEXT], host[256];
	struct tm tm;

	if (start > 0 && gmtime_r(&start, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &tm);
	tfh_print(stdout, "recording  %s\n", tfh_run_path(run));
	print_command(run);
	tfh_print(stdout, "host       %s\nstart      %s\ntime       %s\n",
		  tfh_fmt_cut(host, sizeof(host), *name ? name : "unknown", 64), when,
		  tfh_fmt_time(wall, (double)tfh_run_wall_ns(run) * 1e-9));
	print_end(run);
}

/* Shows which tool recorded an imported trace. */
static void print_source(struct tfh_run *run)
{
	static const char *const tool[] = {
		[TFH_SRC_KINETO] = "PyTorch's profiler (Kineto)",
		[TFH_SRC_XPLANE] = "TensorFlow's or JAX's profiler (XPlane)",
		[TFH_SRC_NSYS] = "Nsight Systems (nsys)",
		[TFH_SRC_ROCPROF] = "rocprof",
		[TFH_SRC_TIMELINE] = "TensorFlow's timeline",
		[TFH_SRC_ASCEND] = "Ascend's profiler",
	};
	const struct tfh_process *p;
	uint32_t n = tfh_run_processes(run, &p);
	struct tfh_gpu_info gpu;

	if (tfh_run_source(run) == TFH_SRC_TFT)
		return;
	tfh_print(stdout, "recorded   by %s\n", tool[tfh_run_source(run)]);
	for (uint32_t i = 0; i < n; i++) {
		char ops[TFH_TEXT], unissued[TFH_TEXT], early[TFH_TEXT];
		tfh_run_gpu(run, i, &gpu);
		if (n == 1)
			tfh_print(stdout, "device     ");
		else
			tfh_print(stdout, "device %-3u ", i);
		tfh_print(stdout, "%s ops, %s of them without the call that issued them",
			  tfh_fmt_count(ops, gpu.ops), tfh_fmt_count(unissued, gpu.unissued));
		if (gpu.early)
			tfh_print(stdout, " (%s were queued before the recording began)",
				  tfh_fmt_count(early, gpu.early));
		tfh_print(stdout, "\n");
	}
}

/* ---- files ---- */

static void type_text(uint32_t type, char out[5])
{
	for (int i = 0; i < 4; i++) {
		char c = (char)(type >> 8 * i);
		out[i] = c >= ' ' && c < 127 ? c : '?';
	}
	out[4] = '\0';
}

static void print_chunks(const struct tft_reader *r)
{
	tfh_print(stdout, "  %6s %-5s %10s %8s %10s %10s %s\n", "chunk", "type", "offset", "events",
		  "bytes", "unpacked", "lost");
	for (uint32_t i = 0; i < tft_chunk_count(r); i++) {
		const struct tft_chunk_info *c = tft_chunk(r, i);
		char type[5];
		type_text(c->type, type);
		tfh_print(stdout, "  %6u %-5s %10llu %8u %10llu %10llu %llu\n", i, type,
			  (unsigned long long)c->offset, c->events,
			  (unsigned long long)c->packed_bytes, (unsigned long long)c->raw_bytes,
			  (unsigned long long)c->dropped);
	}
}

static const char *state_words(const struct tfh_files *files, const char *path,
			       struct tft_reader *r)
{
	uint64_t torn;

	if (tfh_is_salvaged(r, &torn))
		return torn ? "salvaged with losses" : "salvaged";
	if (tft_closed(r))
		return "closed";
	return tfh_files_rest(files, path) >= TFH_REST_SALVAGED ? "the rest salvaged"
								: "not closed";
}

static void print_file(const struct tfh_files *files, const char *path, bool chunks)
{
	struct tft_reader *r;
	struct tfh_err err = {0};
	struct stat st = {0};
	uint64_t events = 0;
	char bytes[TFH_TEXT], count[TFH_TEXT];

	if (tft_open(path, &r, &err)) {
		tfh_print(stdout, "%s\n  unreadable: %s\n", path, err.text);
		return;
	}
	stat(path, &st);
	for (uint32_t i = 0; i < tft_chunk_count(r); i++)
		events += tft_chunk(r, i)->type == TFT_EVNT ? tft_chunk(r, i)->events : 0;
	const struct tft_head *head = tft_head(r);
	tfh_print(stdout, "%s\n  %s, %s events in %u chunks, %s; format %u, written by tfhook %s\n",
		  path, tfh_fmt_bytes(bytes, (double)st.st_size), tfh_fmt_count(count, events),
		  tft_chunk_count(r), state_words(files, path, r), head->version,
		  head->tfhook_version);
	if (chunks)
		print_chunks(r);
	tft_close(r);
}

/* Data not yet in files, of processes that run or were killed. */
static void print_journal(void *arg, const struct tft_found *found)
{
	(void)arg;
	if (!found->code)
		tfh_print(stdout,
			  "%s\n  journal of process %u, which %s: records not yet in its files\n",
			  tft_view_path(found->view), tft_view_header(found->view)->pid,
			  tft_view_life(found->view) == TFT_ALIVE ? "runs" : "is gone");
}

static void print_journals(const char *dir)
{
	char real[4096];

	if (realpath(dir, real))
		tft_journals_of(real, print_journal, NULL);
}

static int cmd_info(const struct tfh_command_line *args)
{
	struct tfh_files files;
	struct tfh_run *run = NULL;
	struct tfh_err err = {0};

	if (args->operands == 1 && tfh_digest_print(args->operand[0])) {
		if (tfh_line_get(args, "chunks") && !tfh_files_find(&files, args, &err))
			print_file(&files, args->operand[0], true);
		return TFH_EXIT_OK;
	}
	int code = tfh_progress_open((const char *const *)args->operand, (uint32_t)args->operands,
				     &run, &err);
	if (code) {
		tfh_say_why(&err, code);
		tfh_run_close(run);
		return tfh_exit_code(code);
	}
	print_run(run);
	print_source(run);
	print_environment(tfh_run_path(run));
	print_processes(run);
	print_software(run);
	print_device_times(run);
	print_unhooked(run);
	bool built = tfh_run_is_built(run);
	tfh_run_close(run);
	if (built)
		return TFH_EXIT_OK;
	tfh_put("\nFILES\n", stdout);
	if (!tfh_files_find(&files, args, &err))
		for (size_t i = 0; i < files.n; i++)
			print_file(&files, files.path[i], tfh_line_get(args, "chunks"));
	print_journals(files.dir);
	tfh_files_free(&files);
	return TFH_EXIT_OK;
}

const struct tfh_command tfh_cmd_info = {
	.name = "info",
	.operand_text = "[PATH...]",
	.summary = "what is in a recording: command, environment, files, gaps",
	.details = "",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_info,
	.flags =
		{
			{.name = "chunks", .help = "list every chunk of every file"},
			TFH_FLAG_COLOR,
		},
};

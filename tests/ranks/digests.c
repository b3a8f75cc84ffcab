/*
 * Writes the digests of a made-up job of many ranks, one per host, as the followers on its hosts would have, with planted defects:
 *
 *     digests DIR HOSTS RANKS_PER_HOST STEPS SEED [DEFECT...]
 *
 * Every rank has three communicators: `tensor` of its host, `data` of the ranks with its place on the hosts of its rack (16 of them), and
 * `world`. In each step it works by itself, then exchanges in these three, one after another, so a rank that is late holds up its host, its
 * rack, and all others. Every rank's work varies, and now and then one has a hiccup. The clocks of hosts differ by milliseconds.
 * Prints one line of JSON: what was planted where.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "digest/digest_out.h"
#include "format/codec.h"
#include "made_job.h"

struct writing {
	struct tfh_digest_out out;
	struct host_clock clock;
	struct tfh_digest_rank rank[64];
	struct tfh_digest_step step[TFH_DIGEST_STEPS_AT_ONCE];
	struct tfh_digest_anchor anchor[TFH_DIGEST_ROWS];
	struct tfh_digest_comm comm[3 * 64];
	struct tfh_digest_open open[64];
	uint32_t host, ranks, steps, anchors, comms, opens;
	int64_t end;
};

static void must(int rc)
{
	if (rc) {
		fprintf(stderr, "digests: %s\n", strerror(-rc));
		exit(1);
	}
}

static void flush_steps(struct writing *x)
{
	must(tfh_digest_put(&x->out, TFT_DSTP, &tfh_digest_steps, x->step, x->steps));
	x->steps = 0;
	x->end = 0;
}

static void flush_anchors(struct writing *x)
{
	must(tfh_digest_put(&x->out, TFT_DCOL, &tfh_digest_anchors, x->anchor, x->anchors));
	x->anchors = 0;
}

static void put_step(struct writing *x, uint32_t number, uint32_t step, const struct work *w,
		     double tensor_wait, double transfer)
{
	double unit = UNIT * 1e-9,
	       begin_s = (job.begin[step] - x->clock.began) * (1 + x->clock.drift);
	int64_t begin = llround(begin_s / unit), sum;
	struct tfh_digest_step *row = &x->step[x->steps++];

	*row = (struct tfh_digest_step){.gap = tft_zigzag((uint64_t)(begin - x->end)),
					.index = step,
					.rank = number,
					.segment = (step < WARMUP	? TFH_SEGMENT_WARMUP
						    : w->checkpoint > 0 ? TFH_SEGMENT_CHECKPOINT
									: TFH_SEGMENT_TRAIN) +
						   1,
					.cls = TFH_CLASS_COMPUTE_BOUND + 1,
					.cause = TFH_CAUSE_COMPUTE_DENSE + 1,
					.tier = 'A',
					.compute = (uint32_t)units(w->compute)};
	row->part[TFH_CAUSE_INPUT_READ] = (uint32_t)units(w->input);
	row->part[TFH_CAUSE_HOST_PYTHON] = (uint32_t)units(w->host);
	row->part[TFH_CAUSE_HOST_LAUNCH] = (uint32_t)units(w->launch);
	row->part[TFH_CAUSE_HOST_CHECKPOINT] = (uint32_t)units(w->checkpoint);
	row->part[TFH_CAUSE_COMMUNICATION_JITTER] = (uint32_t)units(tensor_wait);
	row->part[TFH_CAUSE_COMMUNICATION_TRANSFER] = (uint32_t)units(transfer);
	sum = row->compute;
	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		sum += row->part[c];
	x->end = llround((begin_s + job.begin[step + 1] - job.begin[step]) / unit);
	row->rest = tft_zigzag((uint64_t)(x->end - begin - sum));
	if (x->steps == TFH_DIGEST_STEPS_AT_ONCE)
		flush_steps(x);
}

static void put_anchor(struct writing *x, uint32_t number, uint64_t key, uint32_t nth, double enter,
		       double leave)
{
	x->anchor[x->anchors++] = (struct tfh_digest_anchor){
		.enter_ns = shown(&x->clock, enter),
		.leave_ns =
			shown(&x->clock,
			      leave + 4e-6 * drawn(6, key ^ number ^ (uint64_t)x->host << 40, nth)),
		.key = key,
		.number = nth,
		.rank = number,
		.device = 1};
	if (x->anchors == TFH_DIGEST_ROWS)
		flush_anchors(x);
}

static uint64_t tensor_key(uint32_t host)
{
	return tfh_hash_u64(job.seed ^ (host + 1000ull) << 32);
}

static uint64_t data_key(uint32_t rack, uint32_t place)
{
	return tfh_hash_u64(job.seed ^ (rack * 64 + place + 10000000ull) << 32);
}

static uint64_t world_key(void)
{
	return tfh_hash_u64(job.seed);
}

/* The last exchanges, which were never completed: the hung rank stopped in its work, its host waits in `tensor`, those with its host in
 * `data` in that, and all others in `world`. Nothing but the calls is known of them. */
static void put_last(struct writing *x, uint32_t number, uint32_t rank, const struct work *w,
		     double tensor)
{
	uint32_t host = rank / job.per_host, hung = job.at[D_HUNG], there = hung / job.per_host;
	double t = job.begin[job.done] + own(w);
	bool same_rack = host / RACK == there / RACK;

	if (rank == hung)
		return;
	put_anchor(x, number, tensor_key(host), TENSORS * (job.done + 1), t, t + 1e-5);
	if (host == there)
		return;
	t = job.begin[job.done] + tensor;
	put_anchor(x, number, data_key(host / RACK, rank % job.per_host), job.done + 1, t,
		   t + 1e-5);
	if (!same_rack)
		put_anchor(x, number, world_key(), job.done + 1, t + DATA, t + DATA + 1e-5);
}

static void put_open(struct writing *x, uint32_t number, uint32_t rank, double end)
{
	bool hung = rank == job.at[D_HUNG];
	double begin = job.begin[job.done] + 0.5;
	struct tfh_digest_open *o = &x->open[x->opens++];

	*o = (struct tfh_digest_open){.begin_ns = shown(&x->clock, begin),
				      .open_ns = (uint64_t)((end - begin) * 1e9),
				      .look_ns = shown(&x->clock, end - 0.1),
				      .rank = number};
	o->line = hung ? 77 : 142;
}

static void put_rank(struct writing *x, uint32_t rank)
{
	uint32_t number = x->ranks, host = rank / job.per_host, place = rank % job.per_host,
		 rack = host / RACK;
	double end = job.begin[job.steps] + 30;
	struct work w[64];

	for (uint32_t s = 0; s < job.done; s++) {
		double begin = job.begin[s], last = work_of_host(host, s, w), mine = own(&w[place]),
		       tensor = tensor_s(host, s), data = data_enters(rack, place)[s],
		       spent = data_s(rack, place, s);
		put_step(x, number, s, &w[place], last - mine, job.enter_world[s] + WORLD - last);
		bool slow = tfh_slow_steps_at(&job.slow, s) != UINT32_MAX;
		if (s % 4 == 3 || slow)
			put_anchor(x, number, tensor_key(host), TENSORS * (s + 1), begin + mine,
				   begin + last + tensor);
		if (s % 2 == 1 || slow)
			put_anchor(x, number, data_key(rack, place), s + 1, begin + last + tensor,
				   begin + data + spent);
		if (s % 4 == 3 || slow)
			put_anchor(x, number, world_key(), s + 1, begin + data + spent,
				   begin + job.enter_world[s] + WORLD);
	}
	if (job.has[D_HUNG]) {
		double last = work_of_host(host, job.done, w);
		put_last(x, number, rank, &w[place], last + tensor_s(host, job.done));
		put_open(x, number, rank, end);
	}
	x->comm[x->comms++] = (struct tfh_digest_comm){
		tensor_key(host), TENSORS * (uint64_t)job.done, 0, number, job.per_host, place + 1};
	x->comm[x->comms++] = (struct tfh_digest_comm){
		data_key(rack, place), job.done, 0, number, RACK < job.hosts ? RACK : job.hosts,
		host % RACK + 1};
	x->comm[x->comms++] =
		(struct tfh_digest_comm){world_key(), job.done, 0, number, job.ranks, rank + 1};
	x->rank[x->ranks++] =
		(struct tfh_digest_rank){.number = number,
					 .rank = rank + 1,
					 .pid = 1000 + rank,
					 .cls = TFH_CLASS_COMPUTE_BOUND + 1,
					 .cause = TFH_CAUSE_COMPUTE_DENSE + 1,
					 .tier = 'A',
					 .confidence = 1,
					 .share = 0.7,
					 .unit = UNIT,
					 .steps = job.done,
					 .late_s = NAN,
					 .held_s = NAN,
					 .local = place + 1,
					 .processes = 1,
					 .state = job.has[D_HUNG] ? 0 : TFH_DIGEST_CLOSED,
					 .heard_ns = shown(&x->clock, end),
					 .exchanges = (uint64_t)job.done * (TENSORS + 2)};
}

static void name_host(char out[32], uint32_t host)
{
	snprintf(out, 32, "rack%03u-node%02u", host / RACK, host % RACK);
}

static void put_facts(struct writing *x, const char *host)
{
	static const char *const same[][2] = {
		{"digest", "tfhook.digest/1"},	    {"command.0", "python3"},
		{"command.1", "train.py"},	    {"verdict.class", "compute-bound"},
		{"verdict.cause", "compute.dense"}, {"steps.clock", "mark"}};
	struct tfh_digest_key key[32];
	char text[4][32];
	uint32_t n = 0;

	snprintf(text[0], 32, "%llu",
		 (unsigned long long)(START +
				      (uint64_t)llround((x->clock.began + x->clock.offset) * 1e9)));
	snprintf(text[1], 32, "%.3f", (job.begin[job.steps] + 30));
	snprintf(text[2], 32, "%u", job.ranks);
	snprintf(text[3], 32, "%u", job.done);
	const char *const own_facts[][2] = {
		{"judge", hit(D_VERSION, x->host) ? "another" : tfh_judge_id()},
		{"run.host", host},
		{"start_ns", text[0]},
		{"wall_s", text[1]},
		{"ranks", text[2]},
		{"steps.judged", text[3]},
		{"end", job.has[D_HUNG] ? "killed" : "exit"}};
	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++, n++)
		key[n] = (struct tfh_digest_key){tfh_digest_add_text(&x->out, same[i][0]),
						 tfh_digest_add_text(&x->out, same[i][1])};
	for (size_t i = 0; i < sizeof(own_facts) / sizeof(*own_facts); i++, n++)
		key[n] = (struct tfh_digest_key){tfh_digest_add_text(&x->out, own_facts[i][0]),
						 tfh_digest_add_text(&x->out, own_facts[i][1])};
	must(tfh_digest_put(&x->out, TFT_DKEY, &tfh_digest_keys, key, n));
}

/* Pairs of ranks are below a switch, with an adapter for each. */
static void put_place(struct writing *x, struct tfh_digest_rank *r)
{
	uint32_t place = r->local - 1;
	char text[64];

	snprintf(text, sizeof(text), "0000:%02x:00.0", 0x40 + place);
	r->bus = tfh_digest_add_text(&x->out, text);
	snprintf(text, sizeof(text), "0000:%02x:00.0", 0x20 + place / BELOW);
	r->pcie = tfh_digest_add_text(&x->out, text);
	snprintf(text, sizeof(text), "mlx5_%u", place);
	r->nic = tfh_digest_add_text(&x->out, text);
	snprintf(text, sizeof(text), "%032x/1", x->host / DOMAIN + 1);
	r->fabric = tfh_digest_add_text(&x->out, text);
	r->links = hit(D_LINKS, r->rank - 1) ? 17 : 19;
}

static void write_host(struct writing *x, uint32_t host)
{
	static const struct tfh_fn_info none = {.name = ""};
	char name[32], path[4096];

	name_host(name, host);
	memset(x, 0, sizeof(*x));
	x->host = host;
	x->clock = clock_of(host);
	const struct tft_head head = {.rank = -1,
				      .world = -1,
				      .local_rank = -1,
				      .host = name,
				      .exe = "",
				      .command = "python3",
				      .boot_id = "",
				      .tfhook_version = "",
				      .job = "",
				      .journal_path = "",
				      .fn = &none,
				      .fn_count = 1,
				      .tick_hz = 1000000000,
				      .ticks_are_ns = true};
	snprintf(path, sizeof(path), "%s/%s.digest.tft", job.dir, name);
	must(tft_writer_create(path, NULL, &head, &x->out.w));
	for (uint32_t i = 0; i < job.per_host; i++)
		if (!hit(D_MISSING, host * job.per_host + i))
			put_rank(x, host * job.per_host + i);
	flush_steps(x);
	flush_anchors(x);
	for (uint32_t i = 0; i < x->opens; i++) {
		struct tfh_digest_open *o = &x->open[i];
		o->name = tfh_digest_add_text(&x->out, o->line == 77 ? "cuMemcpyDtoH_v2"
								     : "cuStreamSynchronize");
		o->file = tfh_digest_add_text(&x->out, "/job/train.py");
		o->function = tfh_digest_add_text(&x->out, o->line == 77 ? "log_loss" : "step");
	}
	must(tfh_digest_put(&x->out, TFT_DOPN, &tfh_digest_opens, x->open, x->opens));
	must(tfh_digest_put(&x->out, TFT_DCOM, &tfh_digest_comms, x->comm, x->comms));
	uint32_t at = tfh_digest_add_text(&x->out, name);
	for (uint32_t i = 0; i < x->ranks; i++) {
		x->rank[i].host = at;
		put_place(x, &x->rank[i]);
	}
	must(tfh_digest_put(&x->out, TFT_DRNK, &tfh_digest_ranks, x->rank, x->ranks));
	put_facts(x, name);
	tfh_digest_out_free(&x->out);
	must(tft_writer_finish(x->out.w, true));
}

/* ---- the job ---- */

/* Every defect hits a host of its own. */
static void plant(char **names)
{
	uint32_t first = 1 + (uint32_t)(drawn(7, 0, 0) * (job.hosts - 1 - ALL));

	for (; *names; names++)
		for (int d = 0; d < DEFECTS; d++)
			job.has[d] |=
				!strcmp(*names, defects[d]) || (d < ALL && !strcmp(*names, "all"));
	for (uint32_t d = 0; d < DEFECTS; d++) {
		uint32_t host = (first + d) % job.hosts,
			 place = (uint32_t)(drawn(8, d, 0) * job.per_host);
		job.at[d] = d == D_HOST || d == D_CLOCK || d == D_DAYS || d == D_VERSION ? host
			    : d == D_RAIL						 ? place
			    : d == D_SWITCH	? (uint32_t)(drawn(9, 0, 0) * job.racks)
			    : d == D_DOMAIN	? host / DOMAIN
			    : d == D_CHECKPOINT ? 0
						: host * job.per_host + place;
	}
	job.done = job.has[D_HUNG] ? job.steps - job.steps / 32 - 1 : job.steps;
}

static void tell(void)
{
	char name[32];

	printf("{");
	for (int d = 0, n = 0; d < DEFECTS; d++) {
		if (!job.has[d])
			continue;
		printf("%s\"%s\": ", n++ ? ", " : "", defects[d]);
		name_host(name, job.at[d]);
		if (d == D_HOST || d == D_CLOCK || d == D_DAYS || d == D_VERSION)
			printf("\"%s\"", name);
		else if (d == D_SWITCH)
			printf("\"rack%03u\"", job.at[d]);
		else if (d == D_STALL || d == D_JAM)
			printf("[%u, %u]", job.at[d], d == D_STALL ? STALLED : JAMMED);
		else
			printf("%u", job.at[d]);
	}
	printf("}\n");
}

int main(int argc, char **argv)
{
	if (argc < 6)
		return 2;
	job.dir = argv[1];
	job.hosts = (uint32_t)atoi(argv[2]);
	job.per_host = (uint32_t)atoi(argv[3]);
	job.steps = (uint32_t)atoi(argv[4]);
	job.seed = strtoull(argv[5], NULL, 10);
	job.ranks = job.hosts * job.per_host;
	job.racks = (job.hosts + RACK - 1) / RACK;
	if (job.hosts < ALL + 2 || job.per_host > 64 || !job.per_host || job.steps < 64)
		return 2;
	plant(argv + 6);
	job.enter_world = calloc(job.steps, sizeof(double));
	job.enter_data = calloc((size_t)job.racks * job.per_host * job.steps, sizeof(double));
	job.begin = calloc(job.steps + 1, sizeof(double));
	if (!job.enter_world || !job.enter_data || !job.begin)
		return 1;
	find_last_ranks();
	tell();
	fflush(stdout);
	for (uint32_t p = 0; p < PROCESSES; p++)
		if (!fork()) {
			struct writing *x = malloc(sizeof(*x));
			for (uint32_t h = p; x && h < job.hosts; h += PROCESSES)
				write_host(x, h);
			_exit(!x);
		}
	int status, bad = 0;
	while (wait(&status) > 0)
		bad |= status;
	return bad != 0;
}

/* JSON, schema tfhook.ranks/1 (docs/ranks.md). */
#include <math.h>

#include "base/json.h"
#include "ranks/ranks_words.h"

/* NULL: not known. */
static const char *known(const char *text)
{
	return *text ? text : NULL;
}

static void write_place(struct tfh_json *j, const struct tfh_ranks_rank *r)
{
	tfh_json_kstr(j, "bus", known(r->bus));
	tfh_json_kstr(j, "pcie_switch", known(r->pcie_name));
	tfh_json_kstr(j, "nic", known(r->nic));
	tfh_json_kstr(j, "nvlink_domain", known(r->fabric_name));
	tfh_json_ki64_if(j, "nvlinks", r->links >= 0, r->links);
}

static void write_findings(struct tfh_json *j, const struct tfh_ranks *job)
{
	char text[512];

	tfh_json_key(j, "findings");
	tfh_json_array(j);
	for (uint32_t i = 0; i < job->findings; i++) {
		const struct tfh_ranks_finding *f = &job->finding[i];
		bool clock = f->what == TFH_RANKS_CLOCK, links = f->what == TFH_RANKS_FEW_LINKS;
		tfh_json_object(j);
		tfh_json_kstr(j, "what", tfh_ranks_what_name(f->what));
		tfh_ranks_sentence(text, sizeof(text), job, f);
		tfh_json_kstr(j, "text", text);
		if (!clock)
			tfh_json_ki64(j, "rank", job->rank[f->rank].rank);
		tfh_json_kstr(j, "host", job->host[f->host].name);
		tfh_json_kstr(j, "rack", f->rack < job->racks ? job->rack[f->rack] : NULL);
		if (f->local >= 0)
			tfh_json_ki64(j, "local_rank", f->local);
		if (!clock)
			tfh_json_ku64(j, "ranks", f->ranks);
		if (f->what == TFH_RANKS_SLOW_PCIE)
			tfh_json_kstr(j, "pcie_switch", job->rank[f->rank].pcie_name);
		if (f->what == TFH_RANKS_SLOW_FABRIC || f->what == TFH_RANKS_SLOW_NVLINK)
			tfh_json_kstr(j, "nvlink_domain", job->rank[f->rank].fabric_name);
		if (f->what == TFH_RANKS_SLOW_RAIL)
			tfh_json_kstr(j, "nic", known(job->comm[f->comm].nic));
		if (links)
			tfh_json_ki64(j, "nvlinks", job->rank[f->rank].links);
		tfh_json_kf64(j, "s", links ? NAN : f->s);
		tfh_json_kf64(j, "usual_s", clock || links ? NAN : f->usual_s);
		tfh_json_kf64(j, "s_per_step", clock ? NAN : tfh_ranks_cost(f));
		tfh_json_kstr(j, "cause", tfh_ranks_cause_name(f->cause));
		tfh_json_kf64(j, "from", f->since);
		tfh_json_kf64(j, "to", f->until);
		if (f->what == TFH_RANKS_PERIODIC)
			tfh_json_ku64(j, "every", f->every);
		if (clock)
			tfh_json_kf64(j, "drift", job->host[f->host].drift);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

static void write_hangs(struct tfh_json *j, const struct tfh_ranks *job)
{
	char text[1024];

	tfh_json_key(j, "hangs");
	tfh_json_array(j);
	for (uint32_t i = 0; i < job->hangs; i++) {
		const struct tfh_ranks_hang *h = &job->hang[i];
		const struct tfh_ranks_rank *r = h->rank == UINT32_MAX ? NULL : &job->rank[h->rank];
		tfh_json_object(j);
		tfh_ranks_hang_sentence(text, sizeof(text), job, h);
		tfh_json_kstr(j, "text", text);
		tfh_json_ki64_if(j, "rank", r || h->missing >= 0, r ? r->rank : h->missing);
		tfh_json_kstr(j, "group", tfh_ranks_kind_name(job->comm[h->comm].kind));
		tfh_json_ku64(j, "exchange", h->number);
		tfh_json_ku64(j, "waiting", h->waiting);
		tfh_json_kf64(j, "since_s", h->since_s);
		tfh_json_kstr(j, "call", r ? r->open : NULL);
		tfh_json_kf64(j, "call_s", r && r->open ? r->open_s : NAN);
		tfh_json_kstr(j, "file", r && r->open_line ? r->open_file : NULL);
		tfh_json_ku64_if(j, "line", r && r->open_line, r ? r->open_line : 0);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

static void write_links(struct tfh_json *j, const struct tfh_ranks *job,
			const struct tfh_ranks_step *s)
{
	tfh_json_key(j, "path");
	tfh_json_array(j);
	for (uint32_t i = 0; i < s->links; i++) {
		const struct tfh_ranks_link *l = &s->link[i];
		const struct tfh_ranks_comm *c = &job->comm[l->comm];
		tfh_json_object(j);
		tfh_json_ki64(j, "rank", job->rank[l->rank].rank);
		tfh_json_kstr(j, "group", tfh_ranks_kind_name(c->kind));
		tfh_json_ki64(j, "first", job->rank[c->rank[0]].rank);
		tfh_json_ku64(j, "ranks", c->n);
		tfh_json_ku64(j, "exchange", l->number);
		tfh_json_kf64(j, "wait_s", l->wait_s);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

static void write_steps(struct tfh_json *j, const struct tfh_ranks *job)
{
	char text[1536];

	tfh_json_key(j, "slowest_steps");
	tfh_json_array(j);
	for (uint32_t i = 0; i < job->steps_kept; i++) {
		const struct tfh_ranks_step *s = &job->slowest[i];
		bool slow = s->rank != UINT32_MAX, transfer = s->comm != UINT32_MAX;
		tfh_json_object(j);
		tfh_ranks_step_sentence(text, sizeof(text), job, s);
		tfh_json_ku64(j, "index", s->index);
		tfh_json_kstr(j, "text", text);
		tfh_json_ku64(j, "ranks", s->ranks);
		tfh_json_kf64(j, "s", s->wall_s);
		tfh_json_kf64(j, "usual_s", job->usual_s);
		write_links(j, job, s);
		tfh_json_ki64_if(j, "rank", slow, slow ? job->rank[s->rank].rank : 0);
		tfh_json_kf64(j, "longer_s", slow ? s->over_s : NAN);
		tfh_json_kstr(j, "cause", slow ? tfh_ranks_cause_name(s->cause) : NULL);
		tfh_json_kf64(j, "cause_s", slow && s->cause >= 0 ? s->cause_s : NAN);
		tfh_json_kf64(j, "transfer_s", transfer ? s->transfer_s : NAN);
		tfh_json_kf64(j, "usual_transfer_s",
			      transfer ? job->comm[s->comm].transfer_s : NAN);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

static void write_groups(struct tfh_json *j, const struct tfh_ranks *job)
{
	tfh_json_key(j, "groups");
	tfh_json_array(j);
	for (uint32_t i = 0; i < job->comms; i++) {
		const struct tfh_ranks_comm *c = &job->comm[i];
		tfh_json_object(j);
		tfh_json_kstr(j, "kind", tfh_ranks_kind_name(c->kind));
		tfh_json_ku64(j, "ranks", c->n);
		tfh_json_ku64(j, "hosts", c->hosts);
		tfh_json_ki64(j, "first", job->rank[c->rank[0]].rank);
		tfh_json_ku64(j, "stride", c->stride);
		tfh_json_kf64(j, "per_step", c->per_step);
		tfh_json_kf64(j, "transfer_s", c->transfer_s);
		tfh_json_kf64(j, "wait_s", c->wait_s);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

static void write_hosts(struct tfh_json *j, const struct tfh_ranks *job)
{
	tfh_json_key(j, "hosts");
	tfh_json_array(j);
	for (uint32_t h = 0; h < job->hosts; h++) {
		const struct tfh_ranks_host *x = &job->host[h];
		tfh_json_object(j);
		tfh_json_kstr(j, "host", x->name);
		tfh_json_kf64(j, "clock_offset_s", x->offset_s);
		tfh_json_kf64(j, "clock_drift", x->drift);
		tfh_json_kf64(j, "clock_residual_s", x->residual_s);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

static void write_failed(struct tfh_json *j, const struct tfh_ranks_generation *g)
{
	const struct tfh_ranks_rank *r = g->failed;

	if (!tfh_json_kobject_if(j, "failed", r))
		return;
	tfh_json_ki64(j, "rank", r->rank);
	tfh_json_kstr(j, "host", g->failed_on);
	tfh_json_kf64(j, "at_s", g->failed_s);
	tfh_json_kstr(j, "end", r->end == TFH_END_NONE ? NULL : tfh_end_name(r->end));
	tfh_json_ki64(j, "code", r->code);
	tfh_json_kstr(j, "call", r->open);
	tfh_json_kf64(j, "call_s", r->open ? r->open_s : NAN);
	tfh_json_kstr(j, "file", r->open_line ? r->open_file : NULL);
	tfh_json_ku64_if(j, "line", r->open_line, r->open_line);
	tfh_json_end(j);
}

static void write_generations(struct tfh_json *j, const struct tfh_ranks *job)
{
	char text[512];

	tfh_json_key(j, "generations");
	tfh_json_array(j);
	for (uint32_t i = 0; i < job->generations; i++) {
		const struct tfh_ranks_generation *g = &job->generation[i];
		tfh_json_object(j);
		tfh_ranks_generation_sentence(text, sizeof(text), job, i);
		tfh_json_kstr(j, "text", text);
		tfh_json_ku64(j, "ranks", g->world ? g->world : g->ranks);
		tfh_json_ku64(j, "seen", g->ranks);
		tfh_json_ku64(j, "steps", g->steps);
		tfh_json_kf64(j, "begin_s", g->begin_s);
		tfh_json_kf64(j, "end_s", g->end_s);
		tfh_json_kbool(j, "judged", g->judged);
		write_failed(j, g);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

static void write_ranks(struct tfh_json *j, const struct tfh_ranks *job)
{
	tfh_json_key(j, "ranks");
	tfh_json_array(j);
	for (uint32_t i = 0; i < job->n; i++) {
		const struct tfh_ranks_rank *r = &job->rank[i];
		double n = r->steps ? (double)r->steps : NAN;
		tfh_json_object(j);
		tfh_json_ki64(j, "rank", r->rank);
		tfh_json_kstr(j, "host", job->host[r->host].name);
		tfh_json_ki64_if(j, "local_rank", r->local >= 0, r->local);
		write_place(j, r);
		tfh_json_ku64(j, "steps", r->steps);
		tfh_json_kf64(j, "step_s", r->wall_s / n);
		tfh_json_kf64(j, "own_s", r->own_s / n);
		tfh_json_kf64(j, "compute_s", r->compute_s / n);
		tfh_json_kf64(j, "late_s", r->late_s);
		tfh_json_kf64(j, "held_s", r->held_s);
		tfh_json_kf64(j, "last_share", r->last);
		tfh_json_ku64(j, "processes", r->processes);
		tfh_json_kbool(j, "closed", r->closed);
		tfh_json_kstr(j, "end", r->end == TFH_END_NONE ? NULL : tfh_end_name(r->end));
		tfh_json_ki64(j, "code", r->code);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

int tfh_ranks_json(FILE *out, const struct tfh_ranks *job)
{
	struct tfh_json j;

	tfh_json_init(&j, out, 1);
	tfh_json_object(&j);
	tfh_json_kstr(&j, "schema", "tfhook.ranks/1");
	tfh_json_kstr(&j, "command", job->command);
	tfh_json_ku64(&j, "world", job->world);
	tfh_json_kf64(&j, "step_s", job->step_s);
	tfh_json_kf64(&j, "wait_s", job->wait_s);
	tfh_json_ku64(&j, "digests_unread", job->unread);
	tfh_json_ku64(&j, "digests_of_others", job->others);
	tfh_json_key(&j, "missing");
	tfh_json_array(&j);
	for (uint32_t i = 0; i < job->n_missing; i++)
		tfh_json_u64(&j, job->missing[i]);
	tfh_json_end(&j);
	write_findings(&j, job);
	write_hangs(&j, job);
	tfh_json_key(&j, "path");
	tfh_json_array(&j);
	for (uint32_t i = 0; i < job->path_n; i++)
		tfh_json_i64(&j, job->rank[job->path[i]].rank);
	tfh_json_end(&j);
	write_steps(&j, job);
	write_groups(&j, job);
	write_hosts(&j, job);
	write_ranks(&j, job);
	write_generations(&j, job);
	tfh_json_end(&j);
	return tfh_json_finish(&j);
}

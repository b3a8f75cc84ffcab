/* Sentences about a job of many ranks, for the text and for JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/symbols/pylines.h"
#include "ranks/ranks_words.h"
#include "report/format.h"
#include "report/words/words.h"

const char *tfh_ranks_name(char out[TFH_RANKS_NAME], const struct tfh_ranks *job, uint32_t rank)
{
	const struct tfh_ranks_rank *r = &job->rank[rank];
	char local[32] = "";

	if (r->local >= 0)
		snprintf(local, sizeof(local), ", local rank %d", r->local);
	snprintf(out, TFH_RANKS_NAME, "rank %d (%.60s%s)", r->rank, job->host[r->host].name, local);
	return out;
}

/* "tensor group of ranks 8 to 15" */
const char *tfh_ranks_group(char out[TFH_RANKS_NAME], const struct tfh_ranks *job, uint32_t comm)
{
	const struct tfh_ranks_comm *c = &job->comm[comm];

	if (c->kind == TFH_RANKS_ALL)
		snprintf(out, TFH_RANKS_NAME, "all ranks");
	else
		snprintf(out, TFH_RANKS_NAME, "the %s group of ranks %d to %d",
			 tfh_ranks_kind_name(c->kind), job->rank[c->rank[0]].rank,
			 job->rank[c->rank[c->n - 1]].rank);
	return out;
}

const char *tfh_ranks_kind_name(enum tfh_ranks_kind kind)
{
	static const char *const names[] = {"all", "tensor", "data", "pipeline"};

	return kind < TFH_RANKS_KINDS ? names[kind] : "";
}

const char *tfh_ranks_cause_name(int cause)
{
	return cause == TFH_CAUSE_COUNT ? "compute" : cause < 0 ? NULL : tfh_cause_name(cause);
}

static void who(char *out, size_t size, const struct tfh_ranks *job,
		const struct tfh_ranks_finding *f)
{
	char name[TFH_RANKS_NAME];

	switch (f->what) {
	case TFH_RANKS_SLOW_HOST:
		snprintf(out, size, "host %.60s (%u ranks from %d)", job->host[f->host].name,
			 f->ranks, job->rank[f->rank].rank);
		break;
	case TFH_RANKS_SLOW_RACK:
		snprintf(out, size, "hosts %.60s* (%u ranks)", job->rack[f->rack], f->ranks);
		break;
	case TFH_RANKS_SLOW_PCIE:
		snprintf(out, size, "PCIe switch %.15s of host %.60s (%u ranks from %d)",
			 job->rank[f->rank].pcie_name, job->host[f->host].name, f->ranks,
			 job->rank[f->rank].rank);
		break;
	case TFH_RANKS_SLOW_FABRIC:
		snprintf(out, size, "NVLink domain %.40s (%u ranks from %d)",
			 job->rank[f->rank].fabric_name, f->ranks, job->rank[f->rank].rank);
		break;
	case TFH_RANKS_SLOW_LOCAL:
		snprintf(out, size, "local rank %d of all hosts (%u ranks)", f->local, f->ranks);
		break;
	default:
		tfh_ranks_name(name, job, f->rank);
		snprintf(out, size, "%s%s", name, f->ranks > 1 ? " and others" : "");
	}
}

/* "+41.0 ms a step (8 %), host.python; since step 5,012" */
static void slow_line(char *out, size_t size, const struct tfh_ranks *job,
		      const struct tfh_ranks_finding *f)
{
	char whom[160], time[TFH_TEXT], share[TFH_TEXT], step[TFH_TEXT], span[96] = "";
	const char *cause = tfh_ranks_cause_name(f->cause);

	who(whom, sizeof(whom), job, f);
	if (f->since > 0)
		snprintf(span, sizeof(span), "; since about step %s",
			 tfh_fmt_count(step, f->since_step));
	if (f->until < 1)
		snprintf(span + strlen(span), sizeof(span) - strlen(span),
			 "; until %.0f %% of the run", 100 * f->until);
	snprintf(out, size, "%s: +%s a step (%s), %s%s", whom, tfh_fmt_time(time, f->s),
		 tfh_fmt_share(share, f->s / job->step_s), cause ? cause : "of unknown cause",
		 span);
}

static void periodic_line(char *out, size_t size, const struct tfh_ranks *job,
			  const struct tfh_ranks_finding *f)
{
	char whom[160], time[TFH_TEXT], n[TFH_TEXT], every[48];
	const char *cause = tfh_ranks_cause_name(f->cause);

	who(whom, sizeof(whom), job, f);
	if (f->every)
		snprintf(every, sizeof(every), "every %s steps one", tfh_fmt_count(n, f->every));
	else
		snprintf(every, sizeof(every), "%s steps", tfh_fmt_count(n, f->count));
	snprintf(out, size, "%s: %s of %s more, %s", whom, every, tfh_fmt_time(time, f->s),
		 cause ? cause : "of unknown cause");
}

static void link_line(char *out, size_t size, const struct tfh_ranks *job,
		      const struct tfh_ranks_finding *f)
{
	char name[TFH_RANKS_NAME], where[TFH_RANKS_NAME + 32], time[TFH_TEXT], usual[TFH_TEXT];

	const char *nic = job->comm[f->comm].nic;

	if (f->what == TFH_RANKS_SLOW_RAIL)
		snprintf(where, sizeof(where), "rail of local rank %d%s%.31s%s", f->local,
			 *nic ? " (" : "", nic, *nic ? ")" : "");
	else if (f->what == TFH_RANKS_SLOW_NVLINK)
		snprintf(where, sizeof(where), "NVLink domain %.40s",
			 job->rank[f->rank].fabric_name);
	else if (f->what == TFH_RANKS_SLOW_SWITCH)
		snprintf(where, sizeof(where), "network of hosts %.60s*", job->rack[f->rack]);
	else
		snprintf(where, sizeof(where), "network of %s",
			 tfh_ranks_group(name, job, f->comm));
	snprintf(out, size, "%s: an exchange of %u ranks takes %s, elsewhere %s", where, f->ranks,
		 tfh_fmt_time(time, f->s), tfh_fmt_time(usual, f->usual_s));
}

static void clock_line(char *out, size_t size, const struct tfh_ranks *job,
		       const struct tfh_ranks_finding *f)
{
	const struct tfh_ranks_host *h = &job->host[f->host];
	char time[TFH_TEXT], off[TFH_TEXT], drift[64] = "";

	if (fabs(h->drift) >= 1e-6)
		snprintf(drift, sizeof(drift), ", %s %.0f us a second",
			 h->drift > 0 ? "gaining" : "losing", fabs(h->drift) * 1e6);
	snprintf(out, size, "clock of host %.60s: %s %s the others%s (+-%s)", h->name,
		 tfh_fmt_time(time, fabs(h->offset_s)), h->offset_s > 0 ? "ahead of" : "behind",
		 drift, tfh_fmt_time(off, h->residual_s));
}

void tfh_ranks_sentence(char *out, size_t size, const struct tfh_ranks *job,
			const struct tfh_ranks_finding *f)
{
	char name[TFH_RANKS_NAME];

	switch (f->what) {
	case TFH_RANKS_SLOW_RAIL:
	case TFH_RANKS_SLOW_SWITCH:
	case TFH_RANKS_SLOW_NVLINK:
	case TFH_RANKS_SLOW_COMM:
		link_line(out, size, job, f);
		break;
	case TFH_RANKS_PERIODIC:
		periodic_line(out, size, job, f);
		break;
	case TFH_RANKS_FEW_LINKS:
		snprintf(out, size, "%s: %d NVLinks are up, elsewhere %.0f",
			 tfh_ranks_name(name, job, f->rank), job->rank[f->rank].links, f->usual_s);
		break;
	case TFH_RANKS_CLOCK:
		clock_line(out, size, job, f);
		break;
	default:
		slow_line(out, size, job, f);
	}
}

const char *tfh_ranks_what_name(enum tfh_ranks_what what)
{
	static const char *const names[] = {"slow-rank",  "slow-host",	      "slow-local-rank",
					    "slow-rack",  "slow-pcie-switch", "slow-nvlink-domain",
					    "slow-rail",  "slow-switch",      "slow-nvlink",
					    "slow-group", "rare-steps",	      "few-nvlinks",
					    "clock"};

	return names[what];
}

/* "in cuMemcpyDtoH_v2 for 33.0 s, train.py:77 log_loss" */
void tfh_ranks_open_call(char *out, size_t size, const struct tfh_ranks_rank *r)
{
	char time[TFH_TEXT], place[320] = "";
	const char *state = r->open_state ? tfh_state_words(r->open_state) : "";

	if (r->open_line && r->open_file)
		snprintf(place, sizeof(place), ", at %.200s:%u %.80s", tfh_short_file(r->open_file),
			 r->open_line, r->open_function ? r->open_function : "");
	if (*state)
		snprintf(place + strlen(place), sizeof(place) - strlen(place), ", %s", state);
	if (*r->open)
		snprintf(out, size, "in %.60s for %s%s", r->open, tfh_fmt_time(time, r->open_s),
			 place);
	else if (r->open_s < TFH_REPORT_JUST_S && *place)
		snprintf(out, size, "%s", place + strlen(", "));
	else
		snprintf(out, size, "outside calls for %s%s", tfh_fmt_time(time, r->open_s), place);
}

static void number_text(char *out, size_t size, const struct tfh_ranks *job,
			const struct tfh_ranks_hang *h)
{
	char name[TFH_RANKS_NAME];

	if (h->rank != UINT32_MAX)
		snprintf(out, size, "%s", tfh_ranks_name(name, job, h->rank));
	else if (h->missing >= 0)
		snprintf(out, size, "rank %d, which has no digest,", h->missing);
	else
		snprintf(out, size, "a rank without a digest");
}

void tfh_ranks_hang_sentence(char *out, size_t size, const struct tfh_ranks *job,
			     const struct tfh_ranks_hang *h)
{
	char name[TFH_RANKS_NAME + 32], group[TFH_RANKS_NAME], n[TFH_TEXT], time[TFH_TEXT],
		waiting[TFH_TEXT], call[512] = "";
	const struct tfh_ranks_rank *r = h->rank == UINT32_MAX ? NULL : &job->rank[h->rank];

	number_text(name, sizeof(name), job, h);
	if (r && r->open) {
		strcpy(call, "; it is ");
		tfh_ranks_open_call(call + strlen(call), sizeof(call) - strlen(call), r);
	}
	snprintf(out, size,
		 "%s has not entered exchange %s of %s, in which others have waited for %s; %s "
		 "rank%s wait%s%s",
		 name, tfh_fmt_count(n, h->number), tfh_ranks_group(group, job, h->comm),
		 tfh_fmt_time(time, h->since_s), tfh_fmt_count(waiting, h->waiting),
		 h->waiting == 1 ? "" : "s", h->waiting == 1 ? "s" : "", call);
}

void tfh_ranks_generation_sentence(char *out, size_t size, const struct tfh_ranks *job, uint32_t i)
{
	const struct tfh_ranks_generation *g = &job->generation[i];
	const struct tfh_ranks_rank *r = g->failed;
	char steps[TFH_TEXT], begin[TFH_TEXT], end[TFH_TEXT], failed[TFH_TEXT];
	int at = snprintf(out, size, "start %u of %u, %u ranks: %s step%s, from %s to %s%s", i + 1,
			  job->generations, g->world ? g->world : g->ranks,
			  tfh_fmt_count(steps, g->steps), g->steps == 1 ? "" : "s",
			  tfh_fmt_time(begin, g->begin_s), tfh_fmt_time(end, g->end_s),
			  g->judged ? " (this report)" : "");

	if (!r || at < 0 || (size_t)at >= size)
		return;
	at += snprintf(out + at, size - (size_t)at,
		       r->end == TFH_END_SIGNAL ? "; first rank %d (%.60s) died of signal %d at %s"
		       : r->end == TFH_END_EXIT
			       ? "; first rank %d (%.60s) failed with exit code %d at %s"
			       : "; first rank %d (%.60s) stopped (%d) at %s",
		       r->rank, g->failed_on, r->code, tfh_fmt_time(failed, g->failed_s));
	if (r->open && (size_t)at + 2 < size) {
		at += snprintf(out + at, size - (size_t)at, ", ");
		tfh_ranks_open_call(out + at, size - (size_t)at, r);
	}
}

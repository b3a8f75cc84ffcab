/*
 * A job of many ranks, from the digests of its hosts alone: which ranks the others wait for, and
 * why; whose exchanges are slow; which ranks are missing, died or hang. Memory grows with the
 * number of ranks, not with their steps: a rank's steps become sums over intervals, and of its
 * anchors at most TFH_RANKS_SAMPLES are kept.
 */
#ifndef TFH_RANKS_RANKS_H
#define TFH_RANKS_RANKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/vocabulary.h"

#define TFH_RANKS_TIMES 128u   /* intervals of a rank's time */
#define TFH_RANKS_SAMPLES 256u /* anchors of a rank */
#define TFH_RANKS_COMMS 16u    /* communicators of a rank */
#define TFH_RANKS_SLOW 128u    /* indexes of slow steps of a rank */
#define TFH_RANKS_STEPS 16u    /* of the slowest steps */
#define TFH_RANKS_MOST (1u << 20)

/* A rank's part in a communicator. */
struct tfh_ranks_member {
	uint64_t key;
	uint64_t collectives, messages;
	uint32_t ranks;	     /* of the communicator, 0: not known */
	uint32_t last;	     /* number of the last collective that it entered, 0: none */
	int64_t last_ns;     /* when */
	uint32_t mask, kept; /* samples: numbers with none of these bits */
	uint32_t comm;	     /* row of tfh_ranks.comm */
};

struct tfh_ranks_sample {
	int64_t enter_ns, leave_ns; /* by the host's clock, since its start */
	uint32_t number;
	uint8_t member; /* index in the rank's list */
};

/* A rank in one of tfh_ranks.slowest. */
#define TFH_RANKS_IN_STEP 8u /* exchanges: of a communicator the first one and the last one */
#define TFH_RANKS_PARTS 3u
struct tfh_ranks_in_step {
	int64_t begin_ns, end_ns;      /* by the host's clock, since its start */
	double wall_s, own_s;	       /* wall_s 0: the rank has no such step */
	float part_s[TFH_RANKS_PARTS]; /* the largest parts of own_s */
	uint8_t part[TFH_RANKS_PARTS]; /* enum tfh_cause; TFH_CAUSE_COUNT: computing */
	uint8_t samples;
	struct tfh_ranks_sample sample[TFH_RANKS_IN_STEP];
};

/* Means over an interval. */
struct tfh_ranks_time {
	/* Sum of the steps' times without exchanges, slow steps left out; later the mean's excess
	 * over that of its peers, NAN: no steps. */
	float own_s;
	float wall_s;
	uint32_t steps;
};

struct tfh_ranks_rank {
	int32_t rank;  /* -1: not known */
	uint32_t host; /* index in tfh_ranks.host */
	int32_t local; /* on its host, -1: not known */
	/* Bus address of its device; network adapter next to it; PCIe switch above it; NVLink
	 * domain; "": not known. */
	const char *bus, *nic, *pcie_name, *fabric_name;
	uint32_t pcie, fabric; /* their numbers, UINT32_MAX: not known */
	int links;	       /* NVLinks that are up, -1: not known */
	uint32_t peers; /* communicator of ranks that do the same work; UINT32_MAX: all ranks */
	uint32_t processes;
	enum tfh_end end; /* TFH_END_NONE: not known */
	int code;
	bool closed, recording;
	int64_t begin_ns, heard_ns; /* first record, last sign of life, since the host's start */
	uint32_t world;		    /* number of ranks that there should be, 0: not known */
	uint32_t generation;	    /* among those of its host, 0: its ranks were started once */

	/* judged steps */
	uint64_t steps;
	/* sums; own_s: without exchanges; steady_s: without exchanges and slow steps */
	double wall_s, own_s, steady_s;
	double cause_s[TFH_CAUSE_COUNT], compute_s;
	double square_s; /* sum of the squared own times of steps that are not slow */
	uint64_t steady; /* number of steps that are not slow */
	double usual_s;	 /* median of the first steps' own time */
	double slow_s;	 /* time of slow steps beyond usual ones */
	double slow_cause_s[TFH_CAUSE_COUNT];
	uint64_t slow;
	uint64_t slow_at[TFH_RANKS_SLOW];
	uint64_t first_step, last_step;
	double width_s; /* duration of an interval */
	struct tfh_ranks_time time[TFH_RANKS_TIMES];

	struct tfh_ranks_member member[TFH_RANKS_COMMS];
	uint32_t members;
	struct tfh_ranks_sample *sample; /* [samples] */
	uint32_t samples;
	struct tfh_ranks_in_step *in_step; /* as many as tfh_ranks.slowest */

	/* from exchanges, in seconds on average */
	double late_s; /* behind the first rank */
	double held_s; /* during which all others waited for it alone */
	double last;   /* share of the exchanges in which it was the last */

	const char *open, *open_file, *open_function; /* call open at the end, NULL: none */
	double open_s;
	uint32_t open_line;
	uint8_t open_state;
};

struct tfh_ranks_host {
	const char *name, *command; /* command: NULL: not known */
	uint32_t world;		    /* number of ranks that there should be, 0: not known */
	double wall_s;
	int64_t start_ns; /* when its digest begins, by its clock */
	uint32_t ranks;	  /* rows of its ranks while reading */
	uint32_t rack;	  /* index in tfh_ranks.rack: the host's name without its last number */
	bool other_judge; /* another version of tfhook made the digest */
	uint64_t bytes;	  /* of the segments that the digest was made from */
	/* Its clock against the median one: ahead by offset + drift * time. NAN: not known. */
	double offset_s, drift, residual_s;
	uint64_t aligned; /* number of exchanges that this follows from */
};

/* What ranks of a communicator do in it, by its members. */
enum tfh_ranks_kind {
	TFH_RANKS_ALL,	    /* every rank */
	TFH_RANKS_TENSOR,   /* of one host, side by side */
	TFH_RANKS_DATA,	    /* over hosts */
	TFH_RANKS_PIPELINE, /* messages */
	TFH_RANKS_KINDS
};

struct tfh_ranks_comm {
	uint64_t key;
	uint32_t *rank;	   /* rows, ascending: [n] */
	uint32_t n, ranks; /* ranks: the number that it should have */
	uint32_t hosts;
	uint32_t rack, fabric; /* of all members, UINT32_MAX: several */
	const char *nic;       /* likewise, "": several, or not known */
	int32_t local;	       /* of all members, -1: several */
	uint32_t stride;       /* between ranks, 0: irregular */
	enum tfh_ranks_kind kind;
	uint64_t messages;
	uint32_t top;	 /* number of the last collective that any rank entered */
	double per_step; /* collectives per step */
	/* medians: from the last rank's arrival to the end (NAN: not known, since ranks have no
	 * digest, and one of them may be the last); how long a rank waits for the last one */
	double transfer_s, wait_s;
	uint64_t compared;	   /* exchanges seen by all its ranks */
	uint32_t last_rank;	   /* row of the rank that was last most often */
	double last_share, last_s; /* how often, and the median time by which the others waited */
};

enum tfh_ranks_what {
	TFH_RANKS_SLOW_RANK,
	TFH_RANKS_SLOW_HOST,
	TFH_RANKS_SLOW_LOCAL, /* the same place on every host */
	TFH_RANKS_SLOW_RACK,
	TFH_RANKS_SLOW_PCIE,   /* ranks below one PCIe switch */
	TFH_RANKS_SLOW_FABRIC, /* ranks of one NVLink domain */
	TFH_RANKS_SLOW_RAIL,   /* exchanges among ranks of one place */
	TFH_RANKS_SLOW_SWITCH, /* exchanges among hosts of one rack */
	TFH_RANKS_SLOW_NVLINK, /* exchanges within one NVLink domain */
	TFH_RANKS_SLOW_COMM,   /* exchanges of one communicator */
	TFH_RANKS_PERIODIC,    /* a rank's steps, now and then */
	TFH_RANKS_FEW_LINKS,   /* a rank has fewer NVLinks up than the others */
	TFH_RANKS_CLOCK,       /* a host's clock */
};

struct tfh_ranks_finding {
	enum tfh_ranks_what what;
	uint32_t rank, host, rack, comm; /* indices; of the first one concerned */
	int32_t local;
	uint32_t ranks; /* number of ranks concerned */
	double s;	/* by how much a step is longer; an exchange; number of links */
	double usual_s; /* a step, an exchange or the links of the others */
	int cause;	/* enum tfh_cause; TFH_CAUSE_COUNT: computing */
	double cause_s;
	double since, until; /* shares of the run between which it was so, 0 and 1: always */
	uint64_t since_step;
	uint64_t every; /* PERIODIC: steps, 0: irregular */
	uint64_t count;
};

/* A rank that has not entered an exchange in which other ranks wait. */
struct tfh_ranks_hang {
	uint32_t rank, comm; /* rows; rank UINT32_MAX: one without a digest */
	int32_t missing;     /* its number then, -1: not known */
	uint32_t number;     /* the exchange's number */
	uint32_t waiting;    /* number of ranks that have entered it, or wait for those */
	double since_s;	     /* how long the last one of them has waited */
};

/* A rank that was the last one to enter an exchange. */
struct tfh_ranks_link {
	uint32_t rank, comm; /* rows */
	uint32_t number;     /* the exchange's */
	/* how long the rank of the link before waited for it; of the first link: the median rank */
	double wait_s;
};

/* One step of all ranks: its slowest path, from its last exchange back to the rank that waited for
 * none. */
#define TFH_RANKS_LINKS 6u
struct tfh_ranks_step {
	uint64_t index;
	uint32_t ranks; /* that have it at the same time */
	double wall_s;	/* the median rank's; NAN: no rank has it */
	struct tfh_ranks_link link[TFH_RANKS_LINKS];
	uint32_t links;
	/* The rank that took longer than usual by itself, UINT32_MAX: none did; by how much, and
	 * mostly in what. */
	uint32_t rank;
	double over_s, cause_s;
	int cause; /* enum tfh_cause; TFH_CAUSE_COUNT: computing */
	/* The exchange on the path whose transfer took longer than usual, UINT32_MAX: none did. */
	uint32_t comm;
	double transfer_s;
};

/* All ranks from one start of them to the next. */
struct tfh_ranks_generation {
	uint32_t world, ranks; /* that there should be, 0: not known; that have a digest */
	uint64_t steps;	       /* of the rank that has most */
	double begin_s, end_s; /* since the first host's start, by the hosts' own clocks */
	bool judged;
	struct tfh_ranks_rank *failed; /* the first that did not end well; NULL: none */
	const char *failed_on;	       /* its host: `failed` has no index of it */
	double failed_s;
};

struct tfh_ranks {
	struct tfh_arena arena;
	const char *command;
	double wall_s;
	int64_t epoch_ns; /* the first host's start, where the common axis of time begins */
	struct tfh_ranks_host *host;
	uint32_t hosts, hosts_read; /* hosts_read: with those that only took part in other starts */
	const char **rack;	    /* names */
	uint32_t racks;
	uint32_t pcies, fabrics; /* number of PCIe switches above ranks' devices; NVLink domains */
	struct tfh_ranks_rank *rank; /* by number */
	uint32_t n;
	/* In order of time; NULL if the ranks were started once. `rank` are those of one. */
	struct tfh_ranks_generation *generation;
	uint32_t generations;
	uint32_t world;	   /* number of ranks that there should be */
	uint32_t *missing; /* their numbers */
	uint32_t n_missing;
	struct tfh_ranks_comm *comm; /* largest first */
	uint32_t comms;
	uint32_t unread; /* digests that could not be read */
	const char *unread_why;
	uint32_t others; /* digests of another job, which were left out */
	const char *others_what;
	uint64_t steps; /* sum over all ranks */
	double step_s;	/* mean */
	double wait_s;	/* per step, of the median rank for the last one; NAN: not known */
	double width_s; /* duration of an interval */
	uint32_t times; /* intervals in use */
	struct tfh_ranks_finding *finding;
	uint32_t findings;
	struct tfh_ranks_hang *hang;
	uint32_t hangs;
	uint32_t path[8]; /* indices of ranks: each waits for the next one, the last for none */
	uint32_t path_comm[8]; /* the communicator in which it waits */
	uint32_t path_n;
	/* The slowest first; or the one asked for. */
	struct tfh_ranks_step slowest[TFH_RANKS_STEPS];
	uint32_t steps_kept;
	bool asked;
	double usual_s; /* a usual step; NAN: not known */
};

/* ranks_job.c: reads the digests and finds everything. `step`: number of the only step whose path
 * is looked for; NULL: the slowest ones. The caller frees the result. 0 or -errno with `err`;
 * -ENODATA: none holds a rank. */
int tfh_ranks_find(char *const *digest, uint32_t n, const uint64_t *step, struct tfh_ranks **out,
		   struct tfh_err *err);
void tfh_ranks_free(struct tfh_ranks *job);
/* Cost of a finding per step, in seconds. Without meaning for a clock. */
double tfh_ranks_cost(const struct tfh_ranks_finding *f);

/* ranks_text.c */
struct tfh_ranks_style {
	bool color, all; /* all: every finding, and the whole heat map */
	unsigned columns;
};
void tfh_ranks_text(FILE *out, const struct tfh_ranks *job, const struct tfh_ranks_style *style);
/* The step that was asked for: its path, and the ranks that took longest. */
void tfh_ranks_step_text(FILE *out, const struct tfh_ranks *job,
			 const struct tfh_ranks_style *style);
/* ranks_map.c: own time against that of peers, ranks by time. */
void tfh_ranks_map(FILE *out, const struct tfh_ranks *job, unsigned rows, unsigned columns);
/* ranks_text.c: one line per rank. */
void tfh_ranks_table(FILE *out, const struct tfh_ranks *job);
/* ranks_page.c: a page for a browser. 0 or -errno. */
int tfh_ranks_page(FILE *out, const struct tfh_ranks *job);
/* ranks_json.c: one document of schema tfhook.ranks/1. 0 or -errno. */
int tfh_ranks_json(FILE *out, const struct tfh_ranks *job);

#endif

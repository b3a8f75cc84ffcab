/*
 * A running job as `tfhook top` shows it: its processes, followed through their files and journals,
 * and the verdict on their last seconds. The judge runs as often as a small share of a processor
 * allows.
 */
#ifndef TFH_TOP_WATCH_H
#define TFH_TOP_WATCH_H

#include "judge/result.h"
#include "report/words/words.h"
#include "top/follow.h"

#define TFH_WATCH_PROCESSES 256u
/* Share of a processor for judging. With everything else, the total stays below one hundredth. */
#define TFH_WATCH_SHARE 0.006

struct tfh_watched {
	struct tfh_follow *follow;
	struct tfh_follow_state state;
	uint32_t process; /* in the judged run, UINT32_MAX: not in it */
	bool was_alive;
};

enum tfh_watch_phase {
	TFH_WATCH_WAITING, /* nothing has been recorded */
	TFH_WATCH_RUNNING,
	TFH_WATCH_ENDED
};

struct tfh_watch {
	char dir[4096];
	char name[128]; /* of the job */
	double window_s;
	struct tfh_watched *of;
	uint32_t n_of, cap_of;
	enum tfh_watch_phase phase;
	/* How the job ended; TFH_END_NONE: it runs, or its end is unknown. */
	enum tfh_end end;
	int end_number;
	double wall_s; /* of the job, if end.json has it */
	/* The last verdict; NULL: none yet. */
	struct tfh_run *run;
	struct tfh_result *result;
	struct tfh_wording words;
	int *fd; /* [n_fd], of the run's files */
	uint32_t n_fd;
	char why[512];	     /* why there is no verdict, "" if there is one */
	double judged_at_s;  /* CLOCK_MONOTONIC */
	double judge_cost_s; /* processor time of the last verdict */
	double begun_s;	     /* CLOCK_MONOTONIC, when watching began */
	double alive_s;	     /* CLOCK_MONOTONIC, when a process last recorded; 0: never */
	bool has_files;	     /* something was recorded before watching began */
	bool gone;	     /* nothing was recorded, and `tfhook run` has removed the directory */
};

/* Watches a run directory (absolute path); `window_s`: how many seconds are judged. 0 or -errno. */
int tfh_watch_open(const char *dir, double window_s, struct tfh_watch **out, struct tfh_err *err);
void tfh_watch_close(struct tfh_watch *w);
/* Finds new processes, and reads the counters and calls in flight of all. Cheap. */
void tfh_watch_poll(struct tfh_watch *w);
/* Whether a new verdict is due: the last one is `least_s` old, and old enough for its cost. */
bool tfh_watch_due(const struct tfh_watch *w, double least_s);
/* Reads what is new and judges the last seconds. 0 or -ENOMEM; w->why says why there is no
 * verdict. */
int tfh_watch_judge(struct tfh_watch *w);

/* Seconds of CLOCK_MONOTONIC. */
double tfh_watch_now(void);
/* Processes that record now; records lost by all. */
uint32_t tfh_watch_alive(const struct tfh_watch *w);
uint64_t tfh_watch_lost(const struct tfh_watch *w);
/* Seconds since the last judged step ended; NAN: there is none. */
double tfh_watch_silent(const struct tfh_watch *w);
/* Processor time of this process, as a share of the time since watching began. */
double tfh_watch_cost(const struct tfh_watch *w);
/* Where a call in flight is made in Python, and what its thread waits for; "": unknown. */
void tfh_watch_place(const struct tfh_watch *w, const struct tfh_watched *of,
		     const struct tfh_follow_call *call, char *out, size_t size);

/* ---- output ---- */

struct tfh_style;
/* The screen, in at most that many lines (0: as many as needed). */
void tfh_top_text(FILE *out, const struct tfh_watch *w, const struct tfh_style *style,
		  unsigned lines);
/* A single line. */
void tfh_top_line(FILE *out, const struct tfh_watch *w);
/* One document of schema tfhook.top/1. 0 or -errno. */
int tfh_top_json(FILE *out, const struct tfh_watch *w, int indent);
/* OpenMetrics; 0 or -errno. tfh_top_metrics_file() replaces a file atomically. */
int tfh_top_metrics(FILE *out, const struct tfh_watch *w);
int tfh_top_metrics_file(const char *path, const struct tfh_watch *w);
/* top_screen.c: shows the view on a terminal until q, SIGINT or SIGTERM, even after the job has
 * ended. `each` is called after each refresh. 0, or a signal's number. */
int tfh_top_screen(struct tfh_watch *w, double interval_s, const struct tfh_style *style,
		   void (*each)(void *arg), void *arg);

#endif

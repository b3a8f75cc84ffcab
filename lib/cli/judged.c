#include "cli/judged.h"

#include <errno.h>

#include "cli/digests.h"
#include "digest/digest_restore.h"
#include "model/model.h"

/* `stale`: the digest need not be up to date. -ENOENT without a message: there is none. */
static int from_digest(const char *const *paths, uint32_t n, bool stale, struct tfh_judged *out,
		       struct tfh_err *err)
{
	char newest[4096];
	const char *path = n ? paths[0] : newest;

	if (n > 1 || (!n && !tfh_run_newest(newest, sizeof(newest))))
		return -ENOENT;
	int rc = tfh_digest_here(path, stale, &out->digest);
	if (!rc)
		rc = tfh_digest_restore(out->digest, &out->run, &out->result, err);
	else
		return -ENOENT;
	if (rc)
		tfh_judged_close(out);
	return rc;
}

static int judge_now(const char *const *paths, uint32_t n, tfh_judge_fn judge, void *arg,
		     struct tfh_judged *out, struct tfh_err *err)
{
	int rc = tfh_progress_open(paths, n, &out->run, err);

	if (rc)
		return rc;
	tfh_say_left_out(out->run);
	struct tfh_progress *progress = tfh_progress_start(out->run);
	rc = judge(arg, out->run, &out->result, err);
	tfh_progress_stop(progress);
	return rc;
}

int tfh_judged_open(const char *const *paths, uint32_t n, bool calls, tfh_judge_fn judge, void *arg,
		    struct tfh_judged *out, struct tfh_err *err)
{
	struct tfh_err unused;
	/* While the recording exists, a digest of an earlier version of tfhook is not used. */
	int rc = calls ? -ENOENT : from_digest(paths, n, false, out, &unused);

	if (!rc)
		return 0;
	rc = judge_now(paths, n, judge, arg, out, err);
	if (!rc || (rc != -ENODATA && rc != -EMEDIUMTYPE))
		return rc;
	struct tfh_judged old = {.run = NULL};
	int from = from_digest(paths, n, true, &old, err);
	if (from == -ENOENT)
		return rc;
	tfh_judged_close(out);
	*out = old;
	if (!from)
		tfh_say("from the digest, as the recording is gone: the timeline and `tfhook why "
			"STEP` need its segments");
	return from;
}

void tfh_judged_close(struct tfh_judged *j)
{
	tfh_result_free(j->result);
	tfh_run_close(j->run);
	tfh_digest_close(j->digest);
	*j = (struct tfh_judged){.run = NULL};
}

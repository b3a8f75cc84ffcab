/* The other side of ctl_hosts.c: `tfhook digest --follow` does what a request asks for on its
 * host. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/access.h"
#include "base/fd.h"
#include "cli/cli.h"
#include "cli/ctl_request.h"

struct obeying {
	int dir;
	uid_t owner;
	const char *path, *host;
};

/* Whether the request is still there and valid. Both files' times are the file system's, so the
 * hosts' clocks need not agree. */
static bool is_valid(const struct obeying *o, const char *name, const struct stat *request,
		     const struct stat *claim, uint32_t wait_s)
{
	struct stat now;

	return !fstatat(o->dir, name, &now, AT_SYMLINK_NOFOLLOW) && now.st_ino == request->st_ino &&
	       claim->st_mtim.tv_sec - request->st_mtim.tv_sec <= (time_t)wait_s;
}

static void give(const struct obeying *o, const struct tfh_ctl_request *r,
		 struct tfh_ctl_answer *answer)
{
	struct tfh_ctl_order order = {.verb = (enum tfh_ctl_verb)r->verb,
				      .steps = r->steps,
				      .at = r->at,
				      .host = o->host,
				      .had = r->had,
				      .n_had = r->n_had};

	tfh_say("%s: %s, asked for on host %s", o->path, tfh_ctl_verb_name(order.verb), r->host);
	tfh_ctl_give(&order, o->path, 0);
	tfh_ctl_hear(&order, o->path, 0);
	answer->told = order.told;
	answer->failed = order.failed;
	answer->late = order.late;
	answer->first_least = order.first_least;
	answer->first_most = order.first_most;
}

static void obey(const struct obeying *o, uint64_t id)
{
	const struct tfh_access alone = {.shared = false};
	struct tfh_ctl_answer answer = {.id = id};
	char name[NAME_MAX + 1], own[NAME_MAX + 1], bytes[sizeof(struct tfh_ctl_request) + 1];
	struct tfh_ctl_request r;
	struct stat st, claim;

	if (!tfh_ctl_name(name, id, NULL) || !tfh_ctl_name(own, id, o->host))
		return;
	ssize_t n = tfh_ctl_read(o->dir, name, o->owner, bytes, sizeof(bytes), &st);
	if (n < 0)
		return;
	answer.code = tfh_ctl_request_parse(bytes, (size_t)n, &r);
	if (!answer.code && r.id != id)
		answer.code = -EBADMSG;
	if (!answer.code && !strncmp(r.host, o->host, sizeof(r.host) - 1))
		return;
	int fd = tfh_make_file(o->dir, own, &alone);
	if (fd < 0)
		return; /* -EEXIST: it has been obeyed */
	if (!answer.code && (fstat(fd, &claim) || !is_valid(o, name, &st, &claim, r.wait_s)))
		answer.code = -ESTALE;
	if (!answer.code)
		give(o, &r, &answer);
	tfh_ctl_answer_seal(&answer);
	if (tfh_write(fd, &answer, sizeof(answer)) != (ssize_t)sizeof(answer))
		tfh_say("%s: the answer to a command could not be written", o->path);
	close(fd);
	/* The one who asked has stopped waiting, and nobody else will remove the answer. */
	if (fstatat(o->dir, name, &st, AT_SYMLINK_NOFOLLOW))
		unlinkat(o->dir, own, 0);
}

void tfh_ctl_obey(const char *dir, const char *host)
{
	uint64_t id[TFH_CTL_REQUESTS];
	char path[PATH_MAX];
	struct stat st;
	struct obeying o = {.dir = tfh_ctl_dir(dir, &st), .path = path, .host = host};

	if (o.dir < 0)
		return;
	o.owner = st.st_uid;
	uint32_t n = realpath(dir, path) ? tfh_ctl_list(o.dir, o.owner, id) : 0;
	for (uint32_t i = 0; i < n; i++)
		obey(&o, id[i]);
	close(o.dir);
}

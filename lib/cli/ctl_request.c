#include "cli/ctl_request.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/access.h"
#include "base/crc32c.h"
#include "base/text.h"
#include "cli/cli.h"

#define REQUEST_MAGIC 0x747165726c746374ull /* "tctlreqt" */
#define ANSWER_MAGIC 0x73776e616c746374ull  /* "tctlanws" */
#define VERSION 1u
#define PREFIX "ctl-"
#define OLD_S (2 * TFH_CTL_WAIT_MOST_S)

/* ---- contents ---- */

void tfh_ctl_request_seal(struct tfh_ctl_request *r)
{
	r->magic = REQUEST_MAGIC;
	r->version = VERSION;
	r->check = tfh_crc32c_around(r, sizeof(*r), offsetof(struct tfh_ctl_request, check));
}

void tfh_ctl_answer_seal(struct tfh_ctl_answer *a)
{
	a->magic = ANSWER_MAGIC;
	a->version = VERSION;
	a->check = tfh_crc32c_around(a, sizeof(*a), offsetof(struct tfh_ctl_answer, check));
}

/* Both kinds begin with magic and version. */
static int check_begin(const void *bytes, size_t n, uint64_t magic, size_t size)
{
	struct {
		uint64_t magic;
		uint32_t version, unused;
	} begin;

	if (n < sizeof(begin))
		return -EBADMSG;
	memcpy(&begin, bytes, sizeof(begin));
	if (begin.magic != magic)
		return -EBADMSG;
	if (begin.version != VERSION)
		return -EPROTO;
	return n == size ? 0 : -EBADMSG;
}

int tfh_ctl_request_parse(const void *bytes, size_t n, struct tfh_ctl_request *r)
{
	int code = check_begin(bytes, n, REQUEST_MAGIC, sizeof(*r));

	if (code)
		return code;
	memcpy(r, bytes, sizeof(*r));
	if (r->check != tfh_crc32c_around(r, sizeof(*r), offsetof(struct tfh_ctl_request, check)) ||
	    !memchr(r->host, '\0', sizeof(r->host)) || r->n_had > TFH_CTL_KEYS ||
	    r->wait_s > TFH_CTL_WAIT_MOST_S || r->at > UINT32_MAX || r->verb >= TFH_CTL_VERBS ||
	    !tfh_ctl_fits((enum tfh_ctl_verb)r->verb, r->steps, r->at))
		return -EBADMSG;
	return 0;
}

int tfh_ctl_answer_parse(const void *bytes, size_t n, struct tfh_ctl_answer *a)
{
	int code = check_begin(bytes, n, ANSWER_MAGIC, sizeof(*a));

	if (code)
		return code;
	memcpy(a, bytes, sizeof(*a));
	return a->check == tfh_crc32c_around(a, sizeof(*a), offsetof(struct tfh_ctl_answer, check))
		       ? 0
		       : -EBADMSG;
}

/* ---- files ---- */

int tfh_ctl_dir(const char *dir, struct stat *st)
{
	int fd = tfh_open_own_dir(dir);

	if (fd >= 0 && fstat(fd, st)) {
		close(fd);
		return -EIO;
	}
	return fd;
}

bool tfh_ctl_name(char name[NAME_MAX + 1], uint64_t id, const char *host)
{
	int n = snprintf(name, NAME_MAX + 1, PREFIX "%016" PRIx64 "%s%s%s", id, host ? "." : "",
			 host ? host : "", host ? ".answer" : ".request");

	return n <= NAME_MAX && (!host || !strchr(host, '/'));
}

bool tfh_ctl_is_name(const char *name)
{
	return tfh_starts_with(name, PREFIX) &&
	       (tfh_ends_with(name, ".request") || tfh_ends_with(name, ".answer") ||
		tfh_ends_with(name, ".part"));
}

uint32_t tfh_ctl_list(int dir, uid_t owner, uint64_t id[TFH_CTL_REQUESTS])
{
	DIR *d = tfh_list_names(dir);
	char name[NAME_MAX + 1];
	struct dirent *e;
	struct stat st;
	uint32_t n = 0;

	while (d && (e = readdir(d))) {
		if (!tfh_ctl_is_name(e->d_name) ||
		    fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || st.st_uid != owner)
			continue;
		if (time(NULL) - st.st_mtim.tv_sec > OLD_S)
			unlinkat(dir, e->d_name, 0);
		else if (n < TFH_CTL_REQUESTS &&
			 sscanf(e->d_name, PREFIX "%16" SCNx64, &id[n]) == 1 &&
			 tfh_ctl_name(name, id[n], NULL) && !strcmp(name, e->d_name))
			n++;
	}
	if (d)
		closedir(d);
	return n;
}

ssize_t tfh_ctl_read(int dir, const char *name, uid_t owner, void *to, size_t size, struct stat *st)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (fstat(fd, st))
		n = -errno;
	else if (!S_ISREG(st->st_mode) || st->st_uid != owner || st->st_nlink != 1)
		n = -EPERM;
	else
		n = (n = pread(fd, to, size, 0)) < 0 ? -errno : n;
	close(fd);
	return n;
}

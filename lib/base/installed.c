#include "base/installed.h"

#include <string.h>

#include "base/fd.h"
#include "base/hash.h"

#define DEPTH 8u	   /* folders of a package in each other */
#define ENTRIES 16384u	   /* of a folder: one of data may have millions */
#define LISTED (32u << 20) /* bytes of all lists of a folder */

struct listing {
	struct tfh_installed *in;
	uint32_t first;
	size_t bytes;
};

static void add_name(struct listing *l, const char *name, size_t n)
{
	struct tfh_installed *in = l->in;
	uint64_t key = tfh_hash_bytes(name, n);

	for (uint32_t i = in->names; i-- > l->first;)
		if (in->name[i] == key)
			return;
	if (in->names < TFH_INSTALLED_NAMES)
		in->name[in->names++] = key;
}

/* Adds the first part of each line of a RECORD: "numpy" of "numpy/lib/npyio.py,sha256=...,123". */
static void read_record(struct listing *l, int fd)
{
	char text[4096], name[256] = "";
	bool begins = true;
	size_t n = 0;
	ssize_t got;

	while (l->bytes < LISTED && (got = tfh_read(fd, text, sizeof(text))) > 0) {
		l->bytes += (size_t)got;
		for (ssize_t i = 0; i < got; i++) {
			bool ends = text[i] == '/' || text[i] == ',';
			if (begins && ends && n && *name != '.') /* "../../bin/x" */
				add_name(l, name, n);
			begins = text[i] == '\n' || (begins && !ends && n < sizeof(name) - 1);
			n = text[i] == '\n' ? 0 : n;
			if (begins && text[i] != '\n')
				name[n++] = text[i];
		}
	}
}

static void read_package(struct listing *l, int folder, const char *entry)
{
	static const char kind[] = ".dist-info";
	size_t n = strlen(entry);
	int at, fd;

	if (n < sizeof(kind) || strcmp(entry + n + 1 - sizeof(kind), kind))
		return;
	at = tfh_openat(folder, entry, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	fd = at >= 0 ? tfh_openat(at, "RECORD", O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0) : -1;
	if (fd >= 0) {
		read_record(l, fd);
		tfh_close(fd);
	}
	if (at >= 0)
		tfh_close(at);
}

static void read_folder(struct listing *l, const char *path)
{
	struct entry {
		uint64_t inode, offset;
		unsigned short size;
		unsigned char type;
		char name[];
	};
	_Alignas(struct entry) char data[4096];
	int fd = tfh_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint32_t entries = 0;
	long got;

	while (fd >= 0 && entries < ENTRIES &&
	       (got = syscall(SYS_getdents64, fd, data, sizeof(data))) > 0)
		for (long i = 0; i < got; entries++) {
			const struct entry *e = (const void *)(data + i);
			read_package(l, fd, e->name);
			i += e->size;
		}
	if (fd >= 0)
		tfh_close(fd);
}

static const struct tfh_installed_folder *folder_of(struct tfh_installed *in, const char *path,
						    size_t n)
{
	struct listing l = {.in = in, .first = in->names};
	uint64_t key = tfh_hash_bytes(path, n);
	char folder[1024];

	for (uint32_t i = 0; i < in->folders; i++)
		if (in->folder[i].key == key)
			return &in->folder[i];
	if (in->folders == TFH_INSTALLED_FOLDERS || n >= sizeof(folder))
		return NULL;
	memcpy(folder, path, n);
	folder[n] = '\0';
	read_folder(&l, folder);
	in->folder[in->folders] = (struct tfh_installed_folder){key, l.first, in->names - l.first};
	return &in->folder[in->folders++];
}

size_t tfh_installed_part(struct tfh_installed *in, const char *path)
{
	size_t end = strlen(path), n = end;

	if (*path != '/' || tfh_in_packages(path) || strstr(path, "/lib/python3"))
		return 0;
	for (uint32_t depth = 0; depth < DEPTH; depth++, end = n) {
		const struct tfh_installed_folder *f;
		while (n && path[n - 1] != '/')
			n--;
		if (n < 2)
			break;
		uint64_t name = tfh_hash_bytes(path + n, end - n);
		f = folder_of(in, path, --n);
		for (uint32_t i = 0; f && i < f->names; i++)
			if (in->name[f->first + i] == name)
				return n + 1;
	}
	return 0;
}

size_t tfh_installed_path(struct tfh_installed *in, const char *path, char *to)
{
	size_t part = tfh_installed_part(in, path), n = strlen(path + part), mark = 0;

	if (part) {
		memcpy(to, path, part - 1);
		memcpy(to + part - 1, TFH_INSTALLED_MARK, sizeof(TFH_INSTALLED_MARK) - 1);
		mark = part - 1 + sizeof(TFH_INSTALLED_MARK) - 1;
	}
	memcpy(to + mark, path + part, n + 1);
	return mark + n;
}

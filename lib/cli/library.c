/* Finds the recorder, checks that the loader can load it, and builds the variables that load it
 * into a job. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arch.h"
#include "base/options.h"
#include "cli/cli.h"
#include "cli/run.h"

extern char **environ;

/* For a file that it cannot load, the loader prints an error in every process and runs the job
 * untraced. So check before. */
static int check_object(const char *path, struct tfh_err *err)
{
	Elf64_Ehdr h;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return tfh_err_set(err, -errno, "cannot read the recorder %s: %s", path,
				   strerror(errno));
	ssize_t n = read(fd, &h, sizeof(h));
	close(fd);
	if (n != sizeof(h) || memcmp(h.e_ident, ELFMAG, SELFMAG) ||
	    h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_type != ET_DYN || h.e_machine != TFH_ARCH_ELF)
		return tfh_err_set(err, -ENOEXEC,
				   "the recorder %s is not a shared library of this machine; build "
				   "or install tfhook "
				   "again",
				   path);
	return 0;
}

/* LD_PRELOAD and LD_AUDIT end a path at a blank or colon, so such a path gets a link elsewhere. */
static int make_link(struct tfh_library *library, const char *path, char out[4096],
		     struct tfh_err *err)
{
	const char *tmp = getenv("TMPDIR");
	char link[4096];

	if (!tmp || !*tmp || *tmp != '/' || strpbrk(tmp, " :"))
		tmp = "/tmp";
	if (!*library->link_dir) {
		snprintf(library->link_dir, sizeof(library->link_dir), "%.2048s/tfhook-XXXXXX",
			 tmp);
		if (!mkdtemp(library->link_dir)) {
			library->link_dir[0] = '\0';
			return tfh_err_set(err, -errno,
					   "the recorder's path has a blank or colon (%s), which "
					   "LD_PRELOAD cannot express, and "
					   "no link to it can be made in %s: %s; set TMPDIR",
					   path, tmp, strerror(errno));
		}
	}
	snprintf(link, sizeof(link), "%.3072s/%.512s", library->link_dir, strrchr(path, '/') + 1);
	if (symlink(path, link)) {
		int code = -errno;
		tfh_library_release(library);
		return tfh_err_set(err, code, "cannot make the link %s: %s", link, strerror(-code));
	}
	memcpy(out, link, sizeof(link));
	return 0;
}

static void *map_file(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *map = MAP_FAILED;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0) {
		*size = (size_t)st.st_size;
		map = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	if (fd >= 0)
		close(fd);
	return map;
}

/* A wheel has no links, but copies. */
static bool same_content(const char *a, const char *b)
{
	size_t size[2] = {0, 0};
	void *map[2] = {map_file(a, &size[0]), map_file(b, &size[1])};
	bool same = map[0] != MAP_FAILED && map[1] != MAP_FAILED && size[0] == size[1] &&
		    !memcmp(map[0], map[1], size[0]);

	for (int i = 0; i < 2; i++)
		if (map[i] != MAP_FAILED)
			munmap(map[i], size[i]);
	return same;
}

/*
 * Whether the folders beside the recorder have it, too, under each name that distributions use for
 * $LIB. glibc's loader expands $LIB. musl's does not, and ignores a file that does not exist, but
 * it ends a program for a library that it cannot relocate; so children of a job that use musl run
 * unrecorded. So do 32-bit children, whose loader finds an empty library in lib32 or
 * lib/i386-linux-gnu; without one it would print an error. True if each name of 64-bit loaders, and
 * the loader's own expansion here, leads to the recorder.
 */
static bool has_folders(const char *dir, const char *name)
{
	static const char *const folders[] = {"lib", "lib64", TFH_ARCH_FOLDER};
	char path[8192], own_path[8192];
	struct stat own, st;

	snprintf(own_path, sizeof(own_path), "%s/%s", dir, name);
	bool all = !stat(own_path, &own);
	for (size_t i = 0; all && i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s/%s", dir, folders[i], name);
		all = !stat(path, &st) && ((st.st_dev == own.st_dev && st.st_ino == own.st_ino) ||
					   same_content(own_path, path));
	}
	/* The auditor is in the same place, and does nothing when opened. */
	snprintf(path, sizeof(path), "%s/$LIB/libtfhook-audit.so", dir);
	void *tried = all ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
	if (tried)
		dlclose(tried);
	return tried != NULL;
}

static void set_preload(struct tfh_library *library)
{
	char dir[4096], *slash;

	memcpy(dir, library->path, sizeof(dir));
	slash = strrchr(dir, '/');
	*slash = '\0';
	if (!has_folders(dir, slash + 1) ||
	    (size_t)snprintf(library->preload, sizeof(library->preload), "%s/$LIB/%s", dir,
			     slash + 1) >= sizeof(library->preload))
		memcpy(library->preload, library->path, sizeof(library->path));
}

int tfh_library_find(struct tfh_library *library, bool link, struct tfh_err *err)
{
	const char *exports = getenv(tfh_option_specs[TFH_OPT_EXPORTS].name);
	struct tfh_options options;

	tfh_options_read(&options, NULL);
	if (exports)
		tfh_options_set(&options, TFH_OPT_EXPORTS, exports);
	const char *name =
		tfh_opt_bool(&options, TFH_OPT_EXPORTS) ? "libtfhook.so" : "libtfhook-noexport.so";
	memset(library, 0, sizeof(*library));
	if (tfh_install_find(name, library->path))
		return tfh_err_set(err, -ENOENT,
				   "the recorder %s does not exist; build it (make) or install "
				   "tfhook again (make install)",
				   library->path);
	int code = check_object(library->path, err);
	if (code)
		return code;
	if (link && strpbrk(library->path, " :"))
		return make_link(library, library->path, library->preload, err);
	set_preload(library);
	return 0;
}

int tfh_library_add_audit(struct tfh_library *library, bool link, struct tfh_err *err)
{
	char path[4096];

	if (tfh_install_find("libtfhook-audit.so", path))
		return tfh_err_set(
			err, -ENOENT,
			"%s, which --audit needs, does not exist; build it (make) or install "
			"tfhook again (make install)",
			path);
	int code = check_object(path, err);
	if (code)
		return code;
	if (link && strpbrk(path, " :"))
		return make_link(library, path, library->audit, err);
	memcpy(library->audit, path, sizeof(path));
	return 0;
}

void tfh_library_release(struct tfh_library *library)
{
	if (!*library->link_dir)
		return;
	const char *const links[] = {library->preload, library->audit};
	size_t len = strlen(library->link_dir);

	for (size_t i = 0; i < 2; i++)
		if (!strncmp(links[i], library->link_dir, len))
			unlink(links[i]);
	rmdir(library->link_dir);
	library->link_dir[0] = '\0';
}

char *tfh_preload_value(const char *ours, const char *existing)
{
	char *value = NULL;

	if (!existing || !*existing)
		return strdup(ours);
	for (const char *p = existing; (p = strstr(p, ours)); p++)
		if ((p == existing || strchr(" :", p[-1])) && strchr(" :", p[strlen(ours)]))
			return strdup(existing); /* a launcher has already set it */
	return asprintf(&value, "%s:%s", ours, existing) < 0 ? NULL : value;
}

static bool say_unknown(const char *entry)
{
	int len = (int)strcspn(entry, "=");

	if (!tfh_option_unknown(entry))
		return false;
	const char *near = tfh_option_suggest(entry);
	if (near)
		tfh_say("the variable %.*s is unknown and has no effect; did you mean %s?", len,
			entry, near);
	else
		tfh_say("the variable %.*s is unknown and has no effect; `tfhook env` lists all",
			len, entry);
	return true;
}

static bool say_wrong(const char *entry)
{
	char sentence[512];

	if (!tfh_option_check(entry, sentence, sizeof(sentence)))
		return false;
	tfh_say("%s", sentence);
	return true;
}

unsigned tfh_check_variables(void)
{
	unsigned n = 0;

	for (char **entry = environ; *entry; entry++)
		n += say_unknown(*entry) || say_wrong(*entry);
	return n;
}

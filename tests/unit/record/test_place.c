/* The journal is in /dev/shm only outside containers and while it needs less than 1/32 of the free
 * space there; otherwise beside the output, and never on a file system where a store into a page
 * may block or later fail: then plain memory is used. A file size limit is respected. A file system
 * that may not answer is not queried before it is known to be local. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "record/run/place.h"

#define GIB (1ull << 30)
#define BYTES (72ull << 20)

enum { NONE = 0, BTRFS = 0x9123683e, EXT4 = 0xef53, FUSE = 0x65735546, NFS = 0x6969 };
enum { OVERLAY = 0x794c7630, TMPFS = 0x01021994, XFS = 0x58465342, ZFS = 0x2fc12fc1 };

static void choices(void **state)
{
	static const struct {
		struct tfh_site site;
		enum tfh_place place;
	} cases[] = {
		{{false, UINT64_MAX, TMPFS, 4 * GIB, EXT4}, TFH_PLACE_SHM},
		{{false, UINT64_MAX, TMPFS, 4 * GIB, NFS}, TFH_PLACE_SHM},
		{{false, UINT64_MAX, TMPFS, 32 * BYTES, EXT4}, TFH_PLACE_BESIDE},
		{{false, UINT64_MAX, TMPFS, 32 * (BYTES + 1), EXT4}, TFH_PLACE_SHM},
		{{false, UINT64_MAX, TMPFS, 64 << 20, XFS}, TFH_PLACE_BESIDE},
		{{false, UINT64_MAX, TMPFS, 64 << 20, NFS}, TFH_PLACE_MEMORY},
		{{false, UINT64_MAX, EXT4, 4 * GIB, EXT4}, TFH_PLACE_BESIDE},
		{{false, UINT64_MAX, NONE, 0, BTRFS}, TFH_PLACE_MEMORY},
		{{false, UINT64_MAX, NONE, 0, NONE}, TFH_PLACE_MEMORY},
		{{true, UINT64_MAX, TMPFS, 64 * GIB, OVERLAY}, TFH_PLACE_BESIDE},
		{{true, UINT64_MAX, TMPFS, 64 * GIB, TMPFS}, TFH_PLACE_BESIDE},
		{{true, UINT64_MAX, TMPFS, 64 * GIB, ZFS}, TFH_PLACE_SHM},
		{{true, UINT64_MAX, TMPFS, 64 * GIB, FUSE}, TFH_PLACE_SHM},
		{{true, UINT64_MAX, TMPFS, 64 << 20, NFS}, TFH_PLACE_MEMORY},
		{{false, BYTES, TMPFS, 4 * GIB, EXT4}, TFH_PLACE_MEMORY},
		{{false, BYTES + 1, TMPFS, 4 * GIB, EXT4}, TFH_PLACE_SHM},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(tfh_place_choose(&cases[i].site, BYTES), cases[i].place);
}

static void containers(void **state)
{
	static const struct {
		const char *mountinfo;
		bool container;
	} cases[] = {
		{"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n", false},
		{"22 1 0:25 /@ / rw - btrfs /dev/nvme0n1p2 rw,subvol=/@\n", false},
		{"22 1 0:25 /ostree/deploy/x/deploy/y.0 / rw - xfs /dev/vda4 rw\n", false},
		/* an image or a container's directory on a host */
		{"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
		 "90 22 0:50 / /var/lib/docker/overlay2/1/merged rw - overlay overlay rw\n",
		 false},
		{"700 600 0:50 / / rw - overlay overlay "
		 "rw,lowerdir=/var/lib/docker/overlay2/l/A,upperdir=/x\n",
		 true},
		{"700 600 0:50 / / rw - overlay overlay "
		 "rw,lowerdir=/home/u/.local/share/containers/storage/overlay/l/A\n",
		 true},
		{"1 2 0:40 / /proc rw - proc proc rw\n"
		 "700 600 8:1 /var/lib/enroot-data/user-1/pyxis_5.0 / rw - ext4 /dev/sda1 rw\n",
		 true},
		{"700 600 8:1 /var/lib/lxc/a/rootfs / rw - ext4 /dev/sda1 rw", true},
		{"700 600", false},
		{"", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(tfh_container_root(cases[i].mountinfo), cases[i].container);
}

/* Local is what the list of mounts says to be, links and names that are not there included. /proc is
 * none, and stands for all others. */
static void local_paths(void **state)
{
	static const struct {
		const char *path;
		enum tfh_reach reach;
	} there[] = {{"/proc", TFH_REACH_REMOTE},
		     {"/proc/self/fd", TFH_REACH_REMOTE},
		     {"/dev/shm/../../proc", TFH_REACH_UNKNOWN},
		     {"x", TFH_REACH_UNKNOWN},
		     {"", TFH_REACH_UNKNOWN}};
	char dir[] = "/dev/shm/tfh-local-XXXXXX", path[PATH_MAX], link[64];
	struct statfs fs;

	(void)state;
	/* In a chroot the root may be no mount point: then nothing is known of what lies below. */
	strcpy(path, "/");
	if (tfh_path_reach(path) != TFH_REACH_LOCAL)
		skip();
	for (size_t i = 0; i < sizeof(there) / sizeof(there[0]); i++) {
		strcpy(path, there[i].path);
		assert_int_equal(tfh_path_reach(path), there[i].reach);
	}
	if (statfs("/dev/shm", &fs) || fs.f_type != TMPFS || !mkdtemp(dir))
		skip();
	snprintf(path, sizeof(path), "%s/not/there", dir);
	assert_int_equal(tfh_path_reach(path), TFH_REACH_LOCAL);
	snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(symlink("/proc/self", link), 0);
	snprintf(path, sizeof(path), "%s/fd/run", link);
	assert_int_equal(tfh_path_reach(path), TFH_REACH_REMOTE);
	unlink(link);
	assert_int_equal(symlink(".", link), 0);
	snprintf(path, sizeof(path), "%s/link/run", link);
	assert_int_equal(tfh_path_reach(path), TFH_REACH_LOCAL);
	unlink(link);
	assert_int_equal(symlink("link", link), 0); /* a circle */
	snprintf(path, sizeof(path), "%s/run", link);
	assert_int_equal(tfh_path_reach(path), TFH_REACH_UNKNOWN);
	unlink(link);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(choices), cmocka_unit_test(containers),
					   cmocka_unit_test(local_paths)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

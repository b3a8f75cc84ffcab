/* Builds the journal of a dead process, for the tests of journals. */
#ifndef TESTS_JOURNAL_FAKE_H
#define TESTS_JOURNAL_FAKE_H

#include "format_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "format/journal_view.h"

#define RINGS 2

static char dir[4096], path[4200];

struct fake {
	uint8_t *map;
	size_t size;
	struct tft_journal *j;
	struct tft_staging *staging;
	struct tfh_rec *staged;
	struct tft_ring *ring[RINGS];
	uint64_t t;
};

static struct tfh_rec truth[RINGS][4000];

static inline void put_records(struct fake *f, uint32_t ring, uint32_t n)
{
	struct tft_ring *r = f->ring[ring];
	struct tfh_rec *records = (struct tfh_rec *)(f->map + r->records_off);

	for (uint32_t i = 0; i < n; i++, r->head++) {
		call_record(&records[r->head & r->mask], &f->t, (uint32_t)r->head);
		truth[ring][r->head] = records[r->head & r->mask];
	}
}

/* A journal as a recorder lays it out, of a process that is dead. */
static inline void make_journal(struct fake *f)
{
	uint64_t slots, head, staging, records;
	uint64_t size = tft_journal_plan(&slots, &head, &staging, &records);
	uint64_t rings = size;
	struct tft_head h = sample_head();
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	int boot = open("/proc/sys/kernel/random/boot_id", O_RDONLY);

	memset(f, 0, sizeof(*f));
	f->size = size + RINGS * (TFT_RING_HEADER + TFT_RING_SMALL);
	assert_int_equal(ftruncate(fd, (off_t)f->size), 0);
	f->map = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(f->map, MAP_FAILED);
	close(fd);
	f->j = (struct tft_journal *)f->map;
	*f->j = (struct tft_journal){.version = TFT_JOURNAL_VERSION,
				     .header_bytes = TFT_JOURNAL_HEADER,
				     .slots_off = slots,
				     .head_off = head,
				     .staging_off = staging,
				     .pid = 0x7ffffff0,
				     .process_start = 1,
				     .flags = TFT_JF_LOCKED,
				     .tick_hz = 1000000000,
				     .start = {1000, 2000, 3000},
				     .state = TFT_JOURNAL_RUNNING,
				     .slot_count = RINGS + 1,
				     .heartbeat_ns = 10000000,
				     .clock_n = 1,
				     .clock = {{9000000, 9001000, 9002000}, {0}},
				     .prefix = "r3.node7.4711"};
	snprintf(f->j->run_dir, sizeof(f->j->run_dir), "%s", dir);
	ssize_t n = boot < 0 ? 0 : read(boot, f->j->boot_id, 36);
	f->j->boot_id[n > 0 ? n : 0] = '\0';
	close(boot);
	f->j->head_bytes = (uint32_t)tft_head_pack(&h, f->map + head, TFT_JOURNAL_HEAD_CAP);
	assert_true(f->j->head_bytes <= TFT_JOURNAL_HEAD_CAP);
	f->staging = (struct tft_staging *)(f->map + staging);
	f->staging->records_off = records;
	f->staging->capacity = TFT_STAGING_RECORDS;
	f->staged = (struct tfh_rec *)(f->map + records);
	struct tft_slot *slot = (struct tft_slot *)(f->map + slots);
	for (uint32_t i = 0; i < RINGS; i++) {
		f->ring[i] = (struct tft_ring *)(f->map + rings);
		slot[i] = (struct tft_slot){rings, TFT_RING_HEADER + TFT_RING_SMALL};
		f->ring[i]->records_off = rings + TFT_RING_HEADER;
		f->ring[i]->mask = TFT_RING_SMALL / sizeof(struct tfh_rec) - 1;
		f->ring[i]->thread = i + 1;
		f->ring[i]->tid = 100 + i;
		f->ring[i]->state = TFT_RING_ACTIVE;
		rings += TFT_RING_HEADER + TFT_RING_SMALL;
	}
	slot[RINGS] = (struct tft_slot){f->size - 64, 1}; /* one that lies */
	f->t = 5000;
	f->j->magic = TFT_JOURNAL_MAGIC;
}

static inline void clear_dir(void)
{
	char file[8300];
	struct dirent *e;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d))) {
		snprintf(file, sizeof(file), "%s/%s", dir, e->d_name);
		if (e->d_name[0] != '.')
			unlink(file);
	}
	if (d)
		closedir(d);
}

/* Runs a group of tests in a directory of its own. */
#define RUN_JOURNAL_TESTS(tests)                                                                   \
	({                                                                                         \
		test_path(dir, sizeof(dir), "journal.d");                                          \
		test_path(path, sizeof(path), "journal");                                          \
		mkdir(dir, 0755);                                                                  \
		int failed_ = cmocka_run_group_tests(tests, NULL, NULL);                           \
		clear_dir();                                                                       \
		rmdir(dir);                                                                        \
		unlink(path);                                                                      \
		failed_;                                                                           \
	})

#endif

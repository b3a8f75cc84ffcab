/* Places, rights and kernels that change under the job: places WAY N. */
#include "job.h"

#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>

static int then_on(int n, const char *said)
{
	for (int i = 0; i < 10; i++) {
		steps(n);
		nap_ms(20);
	}
	puts(said);
	return 7;
}

static int no_directory(int n, char **more)
{
	must(!mkdir(more[0], 0755) && !chdir(more[0]) && !rmdir(more[0]), "directory");
	steps(n);
	puts("nowhere");
	return 7;
}

/* Somebody removes files while they are written: places command N COMMAND */
static int command(int n, char **more)
{
	steps(n);
	nap_ms(150);
	must(!system(more[0]), "command");
	return then_on(n, "went on");
}

static int rooted(int n, char **more)
{
	steps(n);
	must(!chroot(more[0]) && !chdir("/"), "chroot");
	return then_on(n, "rooted");
}

static int other_user(int n, char **more)
{
	(void)more;
	steps(n);
	must(!setgroups(0, NULL) && !setgid(65534) && !setuid(65534), "setuid");
	return then_on(n, "nobody");
}

static int other_user_first(int n, char **more)
{
	(void)more;
	must(!setgroups(0, NULL) && !setgid(65534) && !setuid(65534), "setuid");
	steps(n);
	puts("nobody");
	return 7;
}

/* Another namespace after the start: places unshare N FLAGS, then a child in it. */
static int unshared(int n, char **more)
{
	pid_t pid;

	steps(n);
	if (unshare((int)strtol(more[0], NULL, 0)))
		must(0, "unshare");
	pid = fork();
	if (!pid) {
		steps(n);
		exit(3);
	}
	must(ended(pid) == 3, "child");
	return then_on(n, "apart");
}

static int masked(int n, char **more)
{
	(void)more;
	umask(0777);
	steps(n);
	puts("masked");
	return 7;
}

/* Strict mode: read, write and exit are all that is left. */
static int strict(int n, char **more)
{
	(void)more;
	steps(n);
	nap_ms(150);
	must(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), "seccomp");
	steps(1000);
	syscall(SYS_write, 1, "strict\n", 7);
	syscall(SYS_exit, 0);
	return 0;
}

static int strict_first(int n, char **more)
{
	(void)n, (void)more;
	must(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), "seccomp");
	syscall(SYS_write, 1, "strict\n", 7);
	syscall(SYS_exit, 0);
	return 0;
}

/* The counter is taken from the thread, and so from those it makes and from its children; given
 * back with "on". */
static int no_counter(int n, char **more)
{
	steps(n);
	nap_ms(150);
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0)) {
		puts("no counter to be taken");
		return 7;
	}
	steps(n);
	pthread_join(spawn(steps_thread, n), NULL);
	pid_t child = fork();
	if (!child) {
		steps(n);
		_exit(3);
	}
	if (ended(child) != 3)
		return 1;
	if (more[0])
		must(!prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0), "PR_TSC_ENABLE");
	steps(n);
	puts("no counter");
	return 7;
}

/* What Docker's default profile refuses of that which a program may try, with the error it gives.
 */
static int docker(int n, char **more)
{
	static const int refused[] = {SYS_add_key,
				      SYS_bpf,
				      SYS_clock_adjtime,
				      SYS_clock_settime,
				      SYS_userfaultfd,
				      SYS_kexec_load,
				      SYS_keyctl,
				      SYS_mount,
				      SYS_move_pages,
				      SYS_open_by_handle_at,
				      SYS_perf_event_open,
				      SYS_personality,
				      SYS_pivot_root,
				      SYS_process_vm_readv,
				      SYS_process_vm_writev,
				      SYS_ptrace,
				      SYS_quotactl,
				      SYS_reboot,
				      SYS_request_key,
				      SYS_sethostname,
				      SYS_setns,
				      SYS_settimeofday,
				      SYS_swapon,
				      SYS_umount2,
				      SYS_unshare,
				      SYS_io_uring_setup};
	enum { COUNT = sizeof(refused) / sizeof(refused[0]) };
	struct sock_filter code[COUNT + 3] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
	struct sock_fprog program = {COUNT + 3, code};

	for (int i = 0; i < COUNT; i++)
		code[i + 1] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned)refused[i], (uint8_t)(COUNT - i), 0);
	code[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
		     !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program),
	     "seccomp");
	if (more[0]) /* clone3 answers ENOSYS, as it does under older profiles: glibc then takes
			clone */
		return then_on(n, "contained");
	steps(n);
	puts("contained");
	return 7;
}

/* Opens that many libraries, DIR/0.so and so on. */
static int libraries(int n, char **more)
{
	char path[4096];

	steps(n);
	for (int i = 0; i < atoi(more[1]); i++) {
		snprintf(path, sizeof(path), "%s/%d.so", more[0], i);
		must(dlopen(path, RTLD_NOW) != NULL, path);
	}
	return then_on(n, "opened");
}

/* N rounds of work, so that small segments are rotated as those of a week would be. */
static int long_life(int n, char **more)
{
	for (int i = 0; i < n; i++) {
		steps(atol(more[0]));
		nap_ms(10);
	}
	puts("old");
	return 7;
}

int main(int argc, char **argv)
{
	static const struct way ways[] = {{"nodirectory", no_directory},
					  {"command", command},
					  {"chroot", rooted},
					  {"setuid", other_user},
					  {"setuidfirst", other_user_first},
					  {"unshare", unshared},
					  {"umask", masked},
					  {"strict", strict},
					  {"strictfirst", strict_first},
					  {"nocounter", no_counter},
					  {"docker", docker},
					  {"libraries", libraries},
					  {"long", long_life},
					  {NULL, NULL}};

	return choose(ways, argc, argv);
}

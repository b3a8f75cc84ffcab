/* Shows the live view on a terminal, with ncurses. */
#include <curses.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "top/watch.h"

#define LEAST_COLUMNS 20u

static volatile sig_atomic_t got_signal;

static void on_signal(int number)
{
	got_signal = number;
}

/* The colours of report/page.c, by the text between "\033[" and "m". */
static const struct {
	const char *code;
	short pair;
	attr_t attributes;
} tints[] = {{"0", 0, A_NORMAL},  {"1", 0, A_BOLD},    {"1;31", 1, A_BOLD},
	     {"1;33", 2, A_BOLD}, {"1;32", 3, A_BOLD}, {"2", 0, A_DIM}};

static void start_colors(void)
{
	static const short color[] = {COLOR_RED, COLOR_YELLOW, COLOR_GREEN};

	if (!has_colors() || start_color() == ERR)
		return;
	use_default_colors();
	for (short i = 0; i < 3; i++)
		init_pair((short)(i + 1), color[i], -1);
}

static void use_tint(const char *code, size_t len)
{
	for (size_t i = 0; i < sizeof(tints) / sizeof(tints[0]); i++)
		if (strlen(tints[i].code) == len && !memcmp(tints[i].code, code, len)) {
			attrset(tints[i].attributes);
			if (tints[i].pair && has_colors())
				color_set(tints[i].pair, NULL);
		}
}

/* Prints our own text, whose only control sequences are colours. What exceeds the screen is left
 * out. */
static void put_text(const char *text)
{
	int row = 0;

	while (*text && row < LINES) {
		size_t line = strcspn(text, "\n");
		const char *end = text + line;
		move(row++, 0);
		while (text < end) {
			const char *escape = memchr(text, '\033', (size_t)(end - text));
			const char *stop = escape ? escape : end;
			if (stop > text)
				addnstr(text, (int)(stop - text));
			text = stop;
			if (!escape)
				continue;
			const char *last = memchr(escape, 'm', (size_t)(end - escape));
			if (last)
				use_tint(escape + 2, (size_t)(last - escape - 2));
			text = last ? last + 1 : end;
		}
		text += *text == '\n';
	}
}

static void draw(const struct tfh_watch *w, const struct tfh_style *told)
{
	struct tfh_style style = *told;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	style.columns = (unsigned)COLS < LEAST_COLUMNS ? LEAST_COLUMNS : (unsigned)COLS;
	tfh_top_text(out, w, &style, LINES > 1 ? (unsigned)LINES - 1 : 1);
	if (!fclose(out)) {
		erase();
		attrset(A_NORMAL);
		put_text(text);
		refresh();
	}
	free(text);
}

static void take_signals(bool ours)
{
	struct sigaction action = {.sa_handler = ours ? on_signal : SIG_DFL};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

/* Waits for a key, at most that long. False: the user wants to leave. */
static bool wait_for_key(double seconds, bool *resized)
{
	timeout((int)(seconds * 1000));
	int key = getch();
	*resized = key == KEY_RESIZE;
	return key != 'q' && key != 'Q' && key != 3 /* ^C if the terminal sends no signal */;
}

int tfh_top_screen(struct tfh_watch *w, double interval_s, const struct tfh_style *style,
		   void (*each)(void *arg), void *arg)
{
	SCREEN *screen = newterm(NULL, stdout, stdin);
	bool go_on = true, resized = false;

	if (!screen)
		return -ENOTTY;
	got_signal = 0;
	take_signals(true);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	curs_set(0);
	if (style->color)
		start_colors();
	while (go_on && !got_signal) {
		bool ended = w->phase == TFH_WATCH_ENDED;
		if (!resized) {
			tfh_watch_poll(w);
			if (w->phase != TFH_WATCH_WAITING &&
			    (tfh_watch_due(w, interval_s) ||
			     (!ended && w->phase == TFH_WATCH_ENDED)))
				tfh_watch_judge(w);
			each(arg);
		}
		draw(w, style);
		go_on = wait_for_key(interval_s, &resized);
	}
	endwin();
	delscreen(screen);
	take_signals(false);
	return got_signal;
}

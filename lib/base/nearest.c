#include "base/nearest.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

#define LONGEST 63

static int least(int a, int b)
{
	return a < b ? a : b;
}

int tfh_edit_distance(const char *a, const char *b)
{
	size_t n = strnlen(a, LONGEST), m = strnlen(b, LONGEST);
	int rows[3][LONGEST + 1]; /* the last two rows and the current one */

	for (size_t j = 0; j <= m; j++)
		rows[0][j] = (int)j;
	for (size_t i = 1; i <= n; i++) {
		int *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];

		row[0] = (int)i;
		for (size_t j = 1; j <= m; j++) {
			int x = tolower((unsigned char)a[i - 1]),
			    y = tolower((unsigned char)b[j - 1]);

			row[j] = least(above[j - 1] + (x != y), least(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
			    y == tolower((unsigned char)a[i - 2]))
				row[j] = least(row[j], above2[j - 2] + 1);
		}
	}
	return rows[n % 3][m];
}

const char *tfh_nearest(const char *word, const char *const *names, size_t count)
{
	const char *best = NULL;
	int best_distance = INT_MAX;

	for (size_t i = 0; i < count; i++) {
		int distance = tfh_edit_distance(word, names[i]);

		if (distance < best_distance) {
			best_distance = distance;
			best = names[i];
		}
	}
	return best && 3 * best_distance <= (int)strnlen(word, LONGEST) ? best : NULL;
}

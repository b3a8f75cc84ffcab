/*
 * Base of the demangler (demangle.c): the position in the name, texts in an arena of bounded size,
 * substitutions, and leaf parts of names. Private to it.
 */
#ifndef TFH_MODEL_SYMBOLS_DEMANGLE_PARSER_H
#define TFH_MODEL_SYMBOLS_DEMANGLE_PARSER_H

#include <stdbool.h>
#include <stddef.h>

#define ARENA (1u << 20) /* bytes of text in all, which bounds time and memory */
#define LONGEST 8192u	 /* of a mangled name, and of every intermediate text */
#define DEEPEST 96
#define SUBSTITUTIONS 512
#define PARAMETERS 64

/* The text of a declaration is on both sides of the declared name: "int (" ") [3]". */
enum tfh_dm_shape { TFH_DM_PLAIN, TFH_DM_FUNCTION, TFH_DM_ARRAY };

struct tfh_dm_text {
	const char *left, *right;
	/* Whether a pointer to it needs parentheses; not after the first one. */
	enum tfh_dm_shape shape;
};

struct tfh_dm_parser {
	const char *at, *end;
	char *arena;
	size_t used;
	bool failed;
	int depth, lambda; /* enclosing lambdas' parameter lists */
	struct tfh_dm_text sub[SUBSTITUTIONS];
	unsigned subs;
	struct tfh_dm_text arg[PARAMETERS]; /* template arguments of the current function */
	unsigned args;
	bool templated; /* the last name ends with template arguments */
	/* It is a constructor, destructor or conversion, which have no result type. */
	bool unreturning;
	const char *qualifiers; /* of the member function: " const" */
};

/* demangle_parser.c: all texts are in the arena; after a failure they are "". */
const char *tfh_dm_fail(struct tfh_dm_parser *p);
char *tfh_dm_room(struct tfh_dm_parser *p, size_t len);
const char *tfh_dm_join3(struct tfh_dm_parser *p, const char *a, const char *b, const char *c);
const char *tfh_dm_join(struct tfh_dm_parser *p, const char *a, const char *b);
char tfh_dm_peek(const struct tfh_dm_parser *p);
char tfh_dm_peek2(const struct tfh_dm_parser *p);
bool tfh_dm_take(struct tfh_dm_parser *p, const char *what);
void tfh_dm_expect(struct tfh_dm_parser *p, const char *what);
const char *tfh_dm_digits(struct tfh_dm_parser *p);
unsigned long tfh_dm_sequence(struct tfh_dm_parser *p, int base);
/* Adds the next substitution. */
void tfh_dm_remember(struct tfh_dm_parser *p, struct tfh_dm_text t);
void tfh_dm_remember_name(struct tfh_dm_parser *p, const char *text);
const char *tfh_dm_flat(struct tfh_dm_parser *p, struct tfh_dm_text t);

const char *tfh_dm_source_name(struct tfh_dm_parser *p);
/* The last component of a class' name, which is its constructors' name. */
const char *tfh_dm_last_part(struct tfh_dm_parser *p, const char *scope);
struct tfh_dm_text tfh_dm_template_parameter(struct tfh_dm_parser *p);
struct tfh_dm_text tfh_dm_substitution(struct tfh_dm_parser *p);

#endif

/* Subscribers: functions of the client that are called around calls of the driver. */
#include "sim/cupti/sim_cupti.h"

#include <stdlib.h>
#include <string.h>

enum { DOMAIN_DRIVER = 1, DOMAINS = 8, MAX_SUBSCRIBERS = 8, NAME_MAX_LEN = 53 };
enum { SITE_ENTER = 0, SITE_EXIT = 1 };

/* CUpti_CallbackData */
struct callback_data {
	int site;
	const char *function;
	const void *params;
	void *result;
	const char *symbol;
	CUcontext context;
	uint32_t context_id;
	uint64_t *data;
	uint32_t correlation;
};

typedef void (*callback_fn)(void *user, int domain, uint32_t id, const void *data);

struct subscriber {
	bool used;
	callback_fn fn;
	void *user;
	char name[NAME_MAX_LEN + 1];
	bool driver[CBID_COUNT], domain[DOMAINS];
};

/* CUpti_SubscriberParams */
struct subscriber_params {
	size_t size;
	const char *name;
	char *old_name;
	size_t old_size;
};

bool sim_subscribed;
static struct subscriber subscribers[MAX_SUBSCRIBERS];
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static __thread bool inside;

void sim_callbacks(struct sim_tools_call *c, bool leaving)
{
	CUresult result = c->result;
	struct callback_data d = {.site = leaving ? SITE_EXIT : SITE_ENTER,
				  .function = sim_cupti_cbid_name((uint32_t)c->id),
				  .result = leaving ? &result : NULL,
				  .context = c->context,
				  .context_id = c->context_id,
				  .data = &c->data,
				  .correlation = c->correlation};
	/* Calls that a callback makes are not reported to it. */
	if (inside || !c->id)
		return;
	if (leaving && !strncmp(c->name, "cuLaunch", 8))
		d.symbol = c->kernel;
	inside = true;
	for (int i = 0; i < MAX_SUBSCRIBERS; i++) {
		struct subscriber *s = &subscribers[i];
		if (__atomic_load_n(&s->used, __ATOMIC_ACQUIRE) && s->driver[c->id])
			s->fn(s->user, DOMAIN_DRIVER, (uint32_t)c->id, &d);
	}
	inside = false;
}

static CUptiResult subscribe(struct subscriber **out, callback_fn fn, void *user,
			     struct subscriber_params *p)
{
	CUptiResult r = sim_cupti_attach();
	int n = 0;
	struct subscriber *free_one = NULL, *other = NULL;
	if (!out || !fn)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (r)
		return r;
	pthread_mutex_lock(&mu);
	for (int i = 0; i < MAX_SUBSCRIBERS; i++) {
		n += subscribers[i].used;
		if (subscribers[i].used)
			other = &subscribers[i];
		else if (!free_one)
			free_one = &subscribers[i];
	}
	if (p && p->old_name && p->old_size) {
		p->old_name[0] = 0;
		if (other)
			strncat(p->old_name, other->name, p->old_size - 1);
	}
	if (n >= sim_cupti_config()->subscribers || !free_one) {
		pthread_mutex_unlock(&mu);
		return sim_cupti_version() < 18 ? CUPTI_ERROR_MAX_LIMIT_REACHED
						: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	}
	memset(free_one, 0, sizeof(*free_one));
	free_one->fn = fn;
	free_one->user = user;
	if (p && p->name)
		strncat(free_one->name, p->name, NAME_MAX_LEN);
	__atomic_store_n(&free_one->used, true, __ATOMIC_RELEASE);
	sim_subscribed = true;
	pthread_mutex_unlock(&mu);
	*out = free_one;
	return CUPTI_SUCCESS;
}

static bool valid(const struct subscriber *s)
{
	return s >= subscribers && s < subscribers + MAX_SUBSCRIBERS && s->used;
}

void sim_subscribers_clear(void)
{
	for (int i = 0; i < MAX_SUBSCRIBERS; i++)
		__atomic_store_n(&subscribers[i].used, false, __ATOMIC_RELEASE);
	sim_subscribed = false;
}

CUPTI_API(cuptiSubscribe, (struct subscriber * *out, callback_fn fn, void *user), (out, fn, user))
{
	return subscribe(out, fn, user, NULL);
}

CUPTI_API(cuptiSubscribe_v2,
	  (struct subscriber * *out, callback_fn fn, void *user, struct subscriber_params *p),
	  (out, fn, user, p))
{
	return subscribe(out, fn, user, p);
}

CUPTI_API(cuptiUnsubscribe, (struct subscriber * s), (s))
{
	if (!valid(s))
		return CUPTI_ERROR_INVALID_PARAMETER;
	__atomic_store_n(&s->used, false, __ATOMIC_RELEASE);
	return CUPTI_SUCCESS;
}

CUPTI_API(cuptiEnableCallback, (uint32_t on, struct subscriber *s, int domain, uint32_t id),
	  (on, s, domain, id))
{
	if (!valid(s) || domain < 1 || domain >= DOMAINS || !id || id >= CBID_COUNT)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (domain == DOMAIN_DRIVER)
		s->driver[id] = on != 0;
	return CUPTI_SUCCESS;
}

CUPTI_API(cuptiEnableDomain, (uint32_t on, struct subscriber *s, int domain), (on, s, domain))
{
	if (!valid(s) || domain < 1 || domain >= DOMAINS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	s->domain[domain] = on != 0;
	if (domain == DOMAIN_DRIVER)
		memset(s->driver, on != 0, sizeof(s->driver));
	return CUPTI_SUCCESS;
}

CUPTI_API(cuptiEnableAllDomains, (uint32_t on, struct subscriber *s), (on, s))
{
	if (!valid(s))
		return CUPTI_ERROR_INVALID_PARAMETER;
	memset(s->domain, on != 0, sizeof(s->domain));
	memset(s->driver, on != 0, sizeof(s->driver));
	return CUPTI_SUCCESS;
}

CUPTI_API(cuptiGetCallbackState, (uint32_t * on, struct subscriber *s, int domain, uint32_t id),
	  (on, s, domain, id))
{
	if (!on || !valid(s) || domain < 1 || domain >= DOMAINS || id >= CBID_COUNT)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*on = domain == DOMAIN_DRIVER ? s->driver[id] : s->domain[domain];
	return CUPTI_SUCCESS;
}

CUPTI_API(cuptiGetCallbackName, (int domain, uint32_t id, const char **name), (domain, id, name))
{
	if (!name || domain != DOMAIN_DRIVER || !sim_cupti_cbid_name(id))
		return CUPTI_ERROR_INVALID_PARAMETER;
	*name = sim_cupti_cbid_name(id);
	return CUPTI_SUCCESS;
}

CUPTI_API(cuptiSupportedDomains, (size_t * n, int **table), (n, table))
{
	static int domains[] = {DOMAIN_DRIVER};
	if (!n || !table)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*n = 1;
	*table = domains;
	return CUPTI_SUCCESS;
}

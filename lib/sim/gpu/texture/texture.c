/* Texture and surface objects: validated and stored; no kernel reads through them. */
#include "sim/gpu/objects.h"

#include <stdlib.h>
#include <string.h>

enum { RES_ARRAY, RES_MIPMAP, RES_LINEAR, RES_PITCH2D };

typedef struct {
	int resType;
	union {
		CUarray array; /* a mipmapped one, too */
		struct {
			CUdeviceptr devPtr;
			int format;
			unsigned numChannels;
			size_t sizeInBytes;
		} linear;
		struct {
			CUdeviceptr devPtr;
			int format;
			unsigned numChannels;
			size_t width, height, pitchInBytes;
		} pitch2D;
		int reserved[32];
	} res;
	unsigned flags;
} CUDA_RESOURCE_DESC;

typedef struct {
	int addressMode[3], filterMode;
	unsigned flags, maxAnisotropy;
	int mipmapFilterMode;
	float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp, borderColor[4];
	int reserved[12];
} CUDA_TEXTURE_DESC;

typedef struct {
	int format;
	size_t width, height, depth;
	unsigned firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer, reserved[16];
} CUDA_RESOURCE_VIEW_DESC;

/* ---- objects: numbers with descriptions ---- */
struct texture_object {
	bool used, surface, has_view;
	CUDA_RESOURCE_DESC res;
	CUDA_TEXTURE_DESC tex;
	CUDA_RESOURCE_VIEW_DESC view;
};
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static struct texture_object *objects;
static size_t nobjects;

/* With mu: the object of a number, or NULL. */
static struct texture_object *object_of(CUtexObject n, bool surface)
{
	struct texture_object *o = n && n <= nobjects ? &objects[n - 1] : NULL;
	return o && o->used && o->surface == surface ? o : NULL;
}

static CUresult put(CUtexObject *out, const struct texture_object *o)
{
	CUresult r = CUDA_SUCCESS;
	size_t i = 0;
	pthread_mutex_lock(&mu);
	while (i < nobjects && objects[i].used)
		i++;
	if (i == nobjects) {
		size_t n = nobjects ? nobjects * 2 : 16;
		struct texture_object *more = realloc(objects, n * sizeof(*more));
		if (more) {
			memset(more + nobjects, 0, (n - nobjects) * sizeof(*more));
			objects = more;
			nobjects = n;
		} else {
			r = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (!r) {
		objects[i] = *o;
		objects[i].used = true;
		*out = i + 1;
	}
	pthread_mutex_unlock(&mu);
	return r;
}

static bool channels_fit(int format, unsigned n)
{
	return sim_format_bytes(format) && (n == 1 || n == 2 || n == 4);
}

static bool known(CUdeviceptr p, size_t n)
{
	struct sim_range r;
	const void *at = (void *)(uintptr_t)p;
	return sim_mem_find(at, &r) && !sim_mem_check(at, n, false);
}

static CUresult check(const CUDA_RESOURCE_DESC *d)
{
	bool good = false;
	if (!d || d->flags)
		return CUDA_ERROR_INVALID_VALUE;
	switch (d->resType) {
	case RES_ARRAY:
		good = sim_array_is(d->res.array);
		break;
	case RES_MIPMAP:
		good = sim_mipmap_is(d->res.array);
		break;
	case RES_LINEAR:
		good = channels_fit(d->res.linear.format, d->res.linear.numChannels) &&
		       known(d->res.linear.devPtr, d->res.linear.sizeInBytes);
		break;
	case RES_PITCH2D:
		good = channels_fit(d->res.pitch2D.format, d->res.pitch2D.numChannels) &&
		       d->res.pitch2D.width && d->res.pitch2D.height &&
		       known(d->res.pitch2D.devPtr,
			     (d->res.pitch2D.height - 1) * d->res.pitch2D.pitchInBytes +
				     d->res.pitch2D.width *
					     sim_format_bytes(d->res.pitch2D.format) *
					     d->res.pitch2D.numChannels);
		break;
	}
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult tex_create(struct sim_call *c, CUtexObject *out, const CUDA_RESOURCE_DESC *res,
			   const CUDA_TEXTURE_DESC *tex, const CUDA_RESOURCE_VIEW_DESC *view)
{
	(void)c;
	CUresult r = check(res);
	if (r)
		return r;
	if (!out || !tex || (view && res->resType > RES_MIPMAP))
		return CUDA_ERROR_INVALID_VALUE;
	struct texture_object o = {.res = *res, .tex = *tex, .has_view = view != NULL};
	if (view)
		o.view = *view;
	return put(out, &o);
}

static CUresult surf_create(struct sim_call *c, CUtexObject *out, const CUDA_RESOURCE_DESC *res)
{
	(void)c;
	CUresult r = check(res);
	if (r || !out || res->resType != RES_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	struct texture_object o = {.surface = true, .res = *res};
	return put(out, &o);
}

static CUresult destroy(CUtexObject n, bool surface)
{
	pthread_mutex_lock(&mu);
	struct texture_object *o = object_of(n, surface);
	if (o)
		o->used = false;
	pthread_mutex_unlock(&mu);
	return o ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult tex_destroy(struct sim_call *c, CUtexObject n)
{
	(void)c;
	return destroy(n, false);
}

static CUresult surf_destroy(struct sim_call *c, CUtexObject n)
{
	(void)c;
	return destroy(n, true);
}

/* Copies the object, so that no lock is held while the client's memory is written. */
static CUresult copy_of(CUtexObject n, bool surface, const void *out, struct texture_object *copy)
{
	pthread_mutex_lock(&mu);
	const struct texture_object *o = object_of(n, surface);
	if (o)
		*copy = *o;
	pthread_mutex_unlock(&mu);
	return o && out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult tex_resource(struct sim_call *c, CUDA_RESOURCE_DESC *out, CUtexObject n)
{
	struct texture_object o;
	(void)c;
	CUresult r = copy_of(n, false, out, &o);
	if (!r)
		*out = o.res;
	return r;
}

static CUresult tex_texture(struct sim_call *c, CUDA_TEXTURE_DESC *out, CUtexObject n)
{
	struct texture_object o;
	(void)c;
	CUresult r = copy_of(n, false, out, &o);
	if (!r)
		*out = o.tex;
	return r;
}

static CUresult tex_view(struct sim_call *c, CUDA_RESOURCE_VIEW_DESC *out, CUtexObject n)
{
	struct texture_object o;
	(void)c;
	CUresult r = copy_of(n, false, out, &o);
	if (!r && !o.has_view)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*out = o.view;
	return r;
}

static CUresult surf_resource(struct sim_call *c, CUDA_RESOURCE_DESC *out, CUtexObject n)
{
	struct texture_object o;
	(void)c;
	CUresult r = copy_of(n, true, out, &o);
	if (!r)
		*out = o.res;
	return r;
}

SIM_API(cuTexObjectCreate, SIM_NEED_CTX, tex_create,
	(CUtexObject * o, const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *t,
	 const CUDA_RESOURCE_VIEW_DESC *v),
	(o, r, t, v))
SIM_API(cuTexObjectDestroy, SIM_NEED_CTX, tex_destroy, (CUtexObject o), (o))
SIM_API(cuTexObjectGetResourceDesc, SIM_NEED_CTX, tex_resource,
	(CUDA_RESOURCE_DESC * d, CUtexObject o), (d, o))
SIM_API(cuTexObjectGetTextureDesc, SIM_NEED_CTX, tex_texture,
	(CUDA_TEXTURE_DESC * d, CUtexObject o), (d, o))
SIM_API(cuTexObjectGetResourceViewDesc, SIM_NEED_CTX, tex_view,
	(CUDA_RESOURCE_VIEW_DESC * d, CUtexObject o), (d, o))
SIM_API(cuSurfObjectCreate, SIM_NEED_CTX, surf_create,
	(CUtexObject * o, const CUDA_RESOURCE_DESC *r), (o, r))
SIM_API(cuSurfObjectDestroy, SIM_NEED_CTX, surf_destroy, (CUtexObject o), (o))
SIM_API(cuSurfObjectGetResourceDesc, SIM_NEED_CTX, surf_resource,
	(CUDA_RESOURCE_DESC * d, CUtexObject o), (d, o))

/*
 * Texture and surface references of the first CUDA versions: named in the module, or created by the
 * client. Settings are stored; no kernel reads through them.
 */
#include "sim/gpu/texture/texref.h"

#include <stdlib.h>
#include <string.h>

struct sim_texref {
	int magic;
	bool surface;
	const struct sim_module *mod; /* NULL: of cuTexRefCreate */
	char *name;
	CUarray array, mipmap;
	CUdeviceptr address;
	int format, channels, mode[3], filter, mip_filter;
	float bias, least, most, border[4];
	unsigned anisotropy, flags;
	struct sim_texref *next;
};
typedef struct sim_texref *CUtexref;

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static struct sim_texref *list;

static bool is(const struct sim_texref *t, bool surface)
{
	return t && t->magic == SIM_MAGIC_TEXREF && t->surface == surface;
}

static struct sim_texref *ref_new(void)
{
	struct sim_texref *t = calloc(1, sizeof(*t));
	t->magic = SIM_MAGIC_TEXREF;
	t->format = 0x20; /* float */
	t->channels = 1;
	t->anisotropy = 1;
	return t;
}

static void ref_free(struct sim_texref *t)
{
	t->magic = 0;
	free(t->name);
	free(t);
}

void sim_texrefs_drop(const struct sim_module *m)
{
	pthread_mutex_lock(&mu);
	for (struct sim_texref **at = &list; *at;) {
		struct sim_texref *t = *at;
		if (t->mod != m) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		ref_free(t);
	}
	pthread_mutex_unlock(&mu);
}

/* Whether the module's text declares ".texref name" or ".surfref name". */
static bool declared(const struct sim_module *m, const char *kind, const char *name)
{
	size_t n = strlen(name);
	if (!m->text)
		return m->opaque;
	for (const char *p = strstr(m->text, kind); p; p = strstr(p, kind)) {
		p += strlen(kind);
		p += strspn(p, " \t");
		if (!strncmp(p, name, n) && !strchr("abcdefghijklmnopqrstuvwxyz"
						    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$",
						    p[n] ? p[n] : ';'))
			return true;
	}
	return false;
}

static CUresult of_module(CUtexref *out, const struct sim_module *m, const char *name, bool surface)
{
	if (!m || m->magic != SIM_MAGIC_MODULE)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!declared(m, surface ? ".surfref" : ".texref", name))
		return CUDA_ERROR_NOT_FOUND;
	pthread_mutex_lock(&mu);
	struct sim_texref *t = list;
	while (t && (t->mod != m || t->surface != surface || strcmp(t->name, name)))
		t = t->next;
	if (!t) {
		t = ref_new();
		t->surface = surface;
		t->mod = m;
		t->name = strdup(name);
		t->next = list;
		list = t;
	}
	pthread_mutex_unlock(&mu);
	*out = t;
	return CUDA_SUCCESS;
}

static CUresult module_texref(struct sim_call *c, CUtexref *out, CUmodule m, const char *name)
{
	(void)c;
	return of_module(out, m, name, false);
}

static CUresult module_surfref(struct sim_call *c, CUtexref *out, CUmodule m, const char *name)
{
	(void)c;
	return of_module(out, m, name, true);
}

static CUresult create(struct sim_call *c, CUtexref *out)
{
	(void)c;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = ref_new();
	return CUDA_SUCCESS;
}

static CUresult destroy(struct sim_call *c, CUtexref t)
{
	(void)c;
	if (!is(t, false) || t->mod)
		return CUDA_ERROR_INVALID_VALUE;
	ref_free(t);
	return CUDA_SUCCESS;
}

/* ---- the referenced memory ---- */
static CUresult set_array(struct sim_call *c, CUtexref t, CUarray a, unsigned flags)
{
	enum { OVERRIDE_FORMAT = 1 };
	(void)c;
	if (!is(t, false) || !sim_array_is(a) || flags != OVERRIDE_FORMAT)
		return CUDA_ERROR_INVALID_VALUE;
	t->array = a;
	t->mipmap = NULL;
	t->address = 0;
	t->format = a->format;
	t->channels = (int)a->channels;
	return CUDA_SUCCESS;
}

static CUresult set_mipmap(struct sim_call *c, CUtexref t, CUarray m, unsigned flags)
{
	enum { OVERRIDE_FORMAT = 1 };
	(void)c;
	if (!is(t, false) || !sim_mipmap_is(m) || flags != OVERRIDE_FORMAT)
		return CUDA_ERROR_INVALID_VALUE;
	t->mipmap = m;
	t->array = NULL;
	t->address = 0;
	return CUDA_SUCCESS;
}

static CUresult set_address(struct sim_call *c, size_t *off, CUtexref t, CUdeviceptr p, size_t n)
{
	struct sim_range r;
	(void)c;
	if (!is(t, false) || (p && (!sim_mem_find((void *)(uintptr_t)p, &r) ||
				    sim_mem_check((void *)(uintptr_t)p, n, false))))
		return CUDA_ERROR_INVALID_VALUE;
	t->address = p;
	t->array = t->mipmap = NULL;
	if (off)
		*off = 0;
	return CUDA_SUCCESS;
}

static CUresult set_address_v1(struct sim_call *c, unsigned *off, CUtexref t, uint32_t p,
			       unsigned n)
{
	CUresult r = set_address(c, NULL, t, p, n);
	if (!r && off)
		*off = 0;
	return r;
}

static CUresult set_2d(struct sim_call *c, CUtexref t, const CUDA_ARRAY_DESCRIPTOR *d,
		       CUdeviceptr p, size_t pitch)
{
	if (!d || !d->Height || pitch < d->Width * sim_format_bytes(d->Format) * d->NumChannels)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = set_address(c, NULL, t, p, (d->Height - 1) * pitch);
	if (!r) {
		t->format = d->Format;
		t->channels = (int)d->NumChannels;
	}
	return r;
}

typedef struct {
	unsigned Width, Height;
	int Format;
	unsigned NumChannels;
} CUDA_ARRAY_DESCRIPTOR_v1;

static CUresult set_2d_v1(struct sim_call *c, CUtexref t, const CUDA_ARRAY_DESCRIPTOR_v1 *d,
			  uint32_t p, unsigned pitch)
{
	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_ARRAY_DESCRIPTOR wide = {d->Width, d->Height, d->Format, d->NumChannels};
	return set_2d(c, t, &wide, p, pitch);
}

static CUresult set_surface(struct sim_call *c, CUtexref s, CUarray a, unsigned flags)
{
	(void)c;
	if (!is(s, true) || !sim_array_is(a) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	s->array = a;
	return CUDA_SUCCESS;
}

static CUresult get_surface(struct sim_call *c, CUarray *out, CUtexref s)
{
	(void)c;
	if (!out || !is(s, true) || !s->array)
		return CUDA_ERROR_INVALID_VALUE;
	*out = s->array;
	return CUDA_SUCCESS;
}

static CUresult get_address_v1(struct sim_call *c, uint32_t *out, CUtexref t)
{
	(void)c;
	if (!out || !is(t, false) || !t->address)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (uint32_t)t->address;
	return CUDA_SUCCESS;
}

static CUresult set_format(struct sim_call *c, CUtexref t, int format, int channels)
{
	(void)c;
	if (!is(t, false) || !sim_format_bytes(format) ||
	    (channels != 1 && channels != 2 && channels != 4))
		return CUDA_ERROR_INVALID_VALUE;
	t->format = format;
	t->channels = channels;
	return CUDA_SUCCESS;
}

static CUresult get_format(struct sim_call *c, int *format, int *channels, CUtexref t)
{
	(void)c;
	if (!is(t, false))
		return CUDA_ERROR_INVALID_VALUE;
	if (format)
		*format = t->format;
	if (channels)
		*channels = t->channels;
	return CUDA_SUCCESS;
}

static CUresult set_mode(struct sim_call *c, CUtexref t, int dim, int mode)
{
	(void)c;
	if (!is(t, false) || dim < 0 || dim > 2 || mode < 0 || mode > 3)
		return CUDA_ERROR_INVALID_VALUE;
	t->mode[dim] = mode;
	return CUDA_SUCCESS;
}

static CUresult get_mode(struct sim_call *c, int *mode, CUtexref t, int dim)
{
	(void)c;
	if (!is(t, false) || !mode || dim < 0 || dim > 2)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = t->mode[dim];
	return CUDA_SUCCESS;
}

static CUresult set_clamp(struct sim_call *c, CUtexref t, float least, float most)
{
	(void)c;
	if (!is(t, false))
		return CUDA_ERROR_INVALID_VALUE;
	t->least = least;
	t->most = most;
	return CUDA_SUCCESS;
}

static CUresult get_clamp(struct sim_call *c, float *least, float *most, CUtexref t)
{
	(void)c;
	if (!is(t, false) || !least || !most)
		return CUDA_ERROR_INVALID_VALUE;
	*least = t->least;
	*most = t->most;
	return CUDA_SUCCESS;
}

static CUresult set_border(struct sim_call *c, CUtexref t, const float *color)
{
	(void)c;
	if (!is(t, false) || !color)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(t->border, color, sizeof(t->border));
	return CUDA_SUCCESS;
}

static CUresult get_border(struct sim_call *c, float *color, CUtexref t)
{
	(void)c;
	if (!is(t, false) || !color)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(color, t->border, sizeof(t->border));
	return CUDA_SUCCESS;
}

/* Before a launch: this kernel reads through t. */
static CUresult set_param(struct sim_call *c, CUfunction f, int unit, CUtexref t)
{
	enum { DEFAULT_UNIT = -1 };
	(void)c;
	if (!sim_func_is(f))
		return CUDA_ERROR_INVALID_HANDLE;
	return unit == DEFAULT_UNIT && is(t, false) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

#define FIELD_GET(name, type, field, there)                                                        \
	static CUresult get_##field(struct sim_call *c, type *out, CUtexref t)                     \
	{                                                                                          \
		(void)c;                                                                           \
		if (!out || !is(t, false) || !(there))                                             \
			return CUDA_ERROR_INVALID_VALUE;                                           \
		*out = (type)t->field;                                                             \
		return CUDA_SUCCESS;                                                               \
	}                                                                                          \
	SIM_API(cuTexRefGet##name, SIM_NEED_CTX, get_##field, (type * v, CUtexref t), (v, t))

#define FIELD_SET(name, type, field, valid)                                                        \
	static CUresult set_##field(struct sim_call *c, CUtexref t, type v)                        \
	{                                                                                          \
		(void)c;                                                                           \
		if (!is(t, false) || !(valid))                                                     \
			return CUDA_ERROR_INVALID_VALUE;                                           \
		t->field = v;                                                                      \
		return CUDA_SUCCESS;                                                               \
	}                                                                                          \
	SIM_API(cuTexRefSet##name, SIM_NEED_CTX, set_##field, (CUtexref t, type v), (t, v))

FIELD_GET(Address_v2, CUdeviceptr, address, t->address)
FIELD_GET(Array, CUarray, array, t->array)
FIELD_GET(MipmappedArray, CUarray, mipmap, t->mipmap)
FIELD_GET(FilterMode, int, filter, true)
FIELD_SET(FilterMode, int, filter, v == 0 || v == 1)
FIELD_GET(MipmapFilterMode, int, mip_filter, true)
FIELD_SET(MipmapFilterMode, int, mip_filter, v == 0 || v == 1)
FIELD_GET(MipmapLevelBias, float, bias, true)
FIELD_SET(MipmapLevelBias, float, bias, true)
FIELD_GET(MaxAnisotropy, int, anisotropy, true)
FIELD_SET(MaxAnisotropy, unsigned, anisotropy, true)
FIELD_GET(Flags, unsigned, flags, true)
FIELD_SET(Flags, unsigned, flags, v <= 0x3f)

SIM_API(cuModuleGetTexRef, SIM_NEED_CTX, module_texref,
	(CUtexref * t, CUmodule m, const char *name), (t, m, name))
SIM_API(cuModuleGetSurfRef, SIM_NEED_CTX, module_surfref,
	(CUtexref * s, CUmodule m, const char *name), (s, m, name))
SIM_API(cuParamSetTexRef, SIM_NEED_CTX, set_param, (CUfunction f, int unit, CUtexref t),
	(f, unit, t))
SIM_API(cuTexRefCreate, SIM_NEED_CTX, create, (CUtexref * t), (t))
SIM_API(cuTexRefDestroy, SIM_NEED_CTX, destroy, (CUtexref t), (t))
SIM_API(cuTexRefSetArray, SIM_NEED_CTX, set_array, (CUtexref t, CUarray a, unsigned flags),
	(t, a, flags))
SIM_API(cuTexRefSetMipmappedArray, SIM_NEED_CTX, set_mipmap,
	(CUtexref t, CUarray m, unsigned flags), (t, m, flags))
SIM_API(cuTexRefSetAddress, SIM_NEED_CTX, set_address_v1,
	(unsigned *off, CUtexref t, uint32_t p, unsigned n), (off, t, p, n))
SIM_API(cuTexRefSetAddress_v2, SIM_NEED_CTX, set_address,
	(size_t * off, CUtexref t, CUdeviceptr p, size_t n), (off, t, p, n))
SIM_API(cuTexRefSetAddress2D, SIM_NEED_CTX, set_2d_v1,
	(CUtexref t, const CUDA_ARRAY_DESCRIPTOR_v1 *d, uint32_t p, unsigned pitch),
	(t, d, p, pitch))
SIM_API(cuTexRefSetAddress2D_v2, SIM_NEED_CTX, set_2d,
	(CUtexref t, const CUDA_ARRAY_DESCRIPTOR *d, CUdeviceptr p, size_t pitch), (t, d, p, pitch))
SIM_API(cuTexRefSetAddress2D_v3, SIM_NEED_CTX, set_2d,
	(CUtexref t, const CUDA_ARRAY_DESCRIPTOR *d, CUdeviceptr p, size_t pitch), (t, d, p, pitch))
SIM_API(cuTexRefGetAddress, SIM_NEED_CTX, get_address_v1, (uint32_t * p, CUtexref t), (p, t))
SIM_API(cuTexRefSetFormat, SIM_NEED_CTX, set_format, (CUtexref t, int format, int channels),
	(t, format, channels))
SIM_API(cuTexRefGetFormat, SIM_NEED_CTX, get_format, (int *format, int *channels, CUtexref t),
	(format, channels, t))
SIM_API(cuTexRefSetAddressMode, SIM_NEED_CTX, set_mode, (CUtexref t, int dim, int mode),
	(t, dim, mode))
SIM_API(cuTexRefGetAddressMode, SIM_NEED_CTX, get_mode, (int *mode, CUtexref t, int dim),
	(mode, t, dim))
SIM_API(cuTexRefSetMipmapLevelClamp, SIM_NEED_CTX, set_clamp, (CUtexref t, float least, float most),
	(t, least, most))
SIM_API(cuTexRefGetMipmapLevelClamp, SIM_NEED_CTX, get_clamp,
	(float *least, float *most, CUtexref t), (least, most, t))
SIM_API(cuTexRefSetBorderColor, SIM_NEED_CTX, set_border, (CUtexref t, float *color), (t, color))
SIM_API(cuTexRefGetBorderColor, SIM_NEED_CTX, get_border, (float *color, CUtexref t), (color, t))
SIM_API(cuSurfRefSetArray, SIM_NEED_CTX, set_surface, (CUtexref s, CUarray a, unsigned flags),
	(s, a, flags))
SIM_API(cuSurfRefGetArray, SIM_NEED_CTX, get_surface, (CUarray * a, CUtexref s), (a, s))
